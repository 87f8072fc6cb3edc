"""The documentation's Python runs, its links lead somewhere, and its commands are understood."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from multihorizon.cli import main, parser

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SNIPPETS = [(page.name, code) for page in PAGES for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)]
COMMAND = re.compile(r"multihorizon ((?:path|disc|pref|agents|train |report |forag|sweep )[^`#\n]*)")
WITH_RESULTS = [*PAGES, *sorted((ROOT / "results").glob("*/README.md"))]
TEXTS = [re.sub(r"\\\n\s*", "", page.read_text()) for page in WITH_RESULTS]  # with lines that go on made one
COMMANDS = sorted({line for text in TEXTS for line in COMMAND.findall(text)})
BENCHMARKS = sorted({found for text in TEXTS for found in re.findall(r"python benchmarks/(\w+\.py)([^`#\n]*)", text)})


@pytest.mark.parametrize(("page", "code"), SNIPPETS, ids=[f"{page}-{i}" for i, (page, _) in enumerate(SNIPPETS)])
def test_snippets_run(page: str, code: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, f"{page}:\n{code}\n{done.stderr}"


@pytest.mark.parametrize("page", WITH_RESULTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line: str) -> None:
    assert parser().parse_args(line.split()).command


@pytest.mark.parametrize(("script", "line"), BENCHMARKS)
def test_benchmarks_know_their_options(script: str, line: str) -> None:
    source = (ROOT / "benchmarks" / script).read_text()
    for option in re.findall(r"--[a-z-]+", line):
        assert f'"{option}"' in source


SHOWN = re.findall(r"```\n\$ multihorizon ([^\n]*)\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
PRINTED = [(line, shown) for line, shown in SHOWN if line != "foraging"]  # what is trained may differ by machine


@pytest.mark.parametrize(("line", "shown"), PRINTED, ids=[line for line, _ in PRINTED])
def test_the_readme_shows_what_is_printed(
    line: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 0
    printed = {" ".join(row.split()) for row in capsys.readouterr().out.split("\n")}
    for row in shown.replace("...", "").split("\n"):
        assert " ".join(row.split()) in printed


def test_there_is_something_to_check() -> None:
    assert len(SNIPPETS) >= 5
    assert len(COMMANDS) >= 8
    assert len(BENCHMARKS) >= 12
    assert len(PRINTED) == 4
