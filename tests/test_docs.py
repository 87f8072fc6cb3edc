import json
import re
import runpy
from pathlib import Path

import pytest

import multihorizon as mh
from multihorizon.cli import COMMANDS as KNOWN
from multihorizon.cli import main, parser

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = [ROOT / "CHANGELOG.md", ROOT / "examples/README.md", *sorted((ROOT / "results").rglob("README.md"))]
TEXTS = {page.relative_to(ROOT): page.read_text(encoding="utf-8") for page in [*PAGES, *OTHERS]}

CODE = [(page, code) for page, text in TEXTS.items() for code in re.findall(r"```python\n(.*?)```", text, re.S)]
INCLUDED = re.compile(r"# include (.*)\n")  # the site replaces this line by the example
SNIPPETS = [(page, code) for page, code in CODE if not INCLUDED.fullmatch(code)]
INCLUDES = sorted({found[1] for _, code in CODE if (found := INCLUDED.fullmatch(code))})

JOINED = [re.sub(r"\\\n\s*", "", text) for text in TEXTS.values()]  # joins continued lines
WRITTEN = rf"^(?:    |PYTHONPATH=\. )?multihorizon ((?:{'|'.join(KNOWN)})\b[^`#\n]*)$"
COMMAND = re.compile(rf"{WRITTEN}|`multihorizon (.*?)`", re.M)
LINES = {first or second for text in JOINED for first, second in COMMAND.findall(text)}
COMMANDS = sorted(line for line in LINES if line.split()[0] in KNOWN and "AGENT" not in line and len(line.split()) > 1)
BENCHMARKS = sorted({found for text in JOINED for found in re.findall(r"python benchmarks/(\w+\.py)([^`#\n]*)", text)})

OUTPUT = re.compile(r"```\n\$ multihorizon ([^\n]*)\n(.*?)```", re.S)
SHOWN = [found for text in TEXTS.values() for found in OUTPUT.findall(text)]
PRINTED = [(line, shown) for line, shown in SHOWN if line != "foraging"]  # training results may differ between machines


@pytest.mark.usefixtures("no_type_checks")
@pytest.mark.parametrize(("page", "code"), SNIPPETS, ids=[f"{page.name}-{i}" for i, (page, _) in enumerate(SNIPPETS)])
def test_python_blocks_on_pages_run(page: Path, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "block.py").write_text(code, encoding="utf-8")
    runpy.run_path("block.py", run_name="__main__")


def test_included_files_are_examples() -> None:
    assert all(Path(name).parent == Path("examples") and (ROOT / name).is_file() for name in INCLUDES)


@pytest.mark.parametrize("page", TEXTS, ids=str)
def test_links_on_pages_point_to_files(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", TEXTS[page]):
        assert (ROOT / page.parent / target).is_file(), target


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_on_pages_parse(line: str) -> None:
    assert parser().parse_args(line.split()).command


@pytest.mark.parametrize(("script", "line"), BENCHMARKS)
def test_benchmarks_define_the_documented_options(script: str, line: str) -> None:
    source = (ROOT / "benchmarks" / script).read_text()
    for option in re.findall(r"--[a-z-]+", line):
        assert f'"{option}"' in source


@pytest.mark.parametrize(("line", "shown"), PRINTED, ids=[line for line, _ in PRINTED])
def test_outputs_on_pages_are_current(
    line: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 0
    printed = {" ".join(row.split()) for row in capsys.readouterr().out.split("\n")}
    for row in shown.replace("...", "").split("\n"):
        assert " ".join(row.split()) in printed


def test_every_public_name_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/api.md").read_text()
    sections = {"discount", "envs", "hazard", "loggers", "mdp"}
    documented = set(re.findall(r"^::: multihorizon\.(\w+)$", text, re.M)) - sections
    assert documented == {*mh.__all__} - {"__version__", *sections}
    assert {name for name in sections if f"`mh.{name}`" in text} == sections


def test_every_metric_is_explained() -> None:
    explained = set(re.findall(r"`(\w+)`", (ROOT / "docs/reference/metrics.md").read_text()))
    with (ROOT / "results/atari/rainbow-Pong/metrics.jsonl").open() as file:
        line = json.loads(file.readline())
    assert set(line) <= explained
    columns = (mh.Run.metrics.__doc__ or "").partition("Columns: ")[2].partition(".")[0]
    assert set(re.findall(r"\w+", columns)) <= explained
    assert "losses_by_horizon" in columns


def test_result_pages_begin_with_a_question_and_an_answer() -> None:
    pages = sorted((ROOT / "results").glob("*/README.md"))
    index = (ROOT / "results/README.md").read_text()
    for page in pages:
        text = page.read_text()
        assert re.match(r"# .*\?\n\n\*\*", text), f"{page} must begin with a question and its answer"
        assert "## Caveats" in text
        assert len(text.splitlines()) <= 65
        assert f"({page.parent.name}/README.md)" in index


def test_the_patterns_find_enough_blocks_and_commands() -> None:
    assert len(SNIPPETS) >= 10
    assert len(INCLUDES) >= 8
    assert len(COMMANDS) >= 30
    assert len(BENCHMARKS) >= 12
    assert {line for line, _ in PRINTED} == {"pathworld", "discount", "preferences", "agents", "report --paper"}
