"""Hooks of the documentation build.

Pages link to files by relative paths that are valid in the repository. The build adds the files outside docs/ that
pages link to, rewrites the links, fills in the generated parts of the reference, and checks the built site.
"""

import posixpath
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent))

import generated  # noqa: E402 - a module beside this file

# Pages of the repository that are part of the site, by their path in the site.
OUTSIDE = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "examples/README.md": "examples/README.md",
    **{str(path.relative_to(ROOT)): str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("results/**/README.md"))},
}
NOTEBOOKS = {f"notebooks/{path.stem}.md": f"notebooks/{path.name}" for path in sorted(ROOT.glob("notebooks/*.ipynb"))}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)((?:#[^)\s]*)?)(?=\))")
CODE = re.compile(r"^```.*?^```", re.M | re.S)
# `FORMULA` matches exponents and subscripts. Code, links and HTML match as `verbatim` and stay unchanged.
VERBATIM = r"^```.*?^```|(?<=\n\n)(?: {4}[^\n]*\n)+|`[^`\n]*`|\]\([^)\n]*\)|<[^>\n]*>|^:::[^\n]*"
SCRIPT = r"{[^{}\n]+}|\d+\.\d+|\w+"
FORMULA = re.compile(
    rf"(?P<verbatim>{VERBATIM})|(?P<base>(?<![\w/])[QREΣsaxγ](?=_)|(?=\^))(?P<mark>[_^])(?P<script>{SCRIPT})",
    re.M | re.S,
)
REMOTE = re.compile(r"<(?:(?:script|img|iframe|source)\b[^>]*\bsrc|link\b[^>]*\bhref)=[\"']?(?:https?:)?//")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages outside docs/, the notebooks, and every file that a page links to."""
    for uri, source in OUTSIDE.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    for uri, source in NOTEBOOKS.items():
        files.append(File.generated(config, uri, content=generated.notebook(ROOT / source)))
    for page in [file for file in files if file.is_documentation_page()]:
        for target, _ in LINK.findall(CODE.sub("", page.content_string)):
            path = _in_repository(page.src_uri, target)
            uri = _in_site(path)
            if not path.startswith("docs/") and uri not in files.src_uris and (ROOT / path).is_file():
                files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites links from paths in the repository to paths in the site, and fills in generated parts."""
    here = page.file.src_uri

    def rewritten(found: re.Match[str]) -> str:
        uri = _in_site(_in_repository(here, found[1]))
        return posixpath.relpath(uri, posixpath.dirname(here) or ".") + found[2]

    return typeset(LINK.sub(rewritten, generated.fill(markdown)))


def typeset(markdown: str) -> str:
    """Converts exponents and subscripts of plain-text formulas, such as e^{-λt} and γ_max, to HTML."""

    def written(found: re.Match[str]) -> str:
        if found["verbatim"]:
            return found[0]
        tag = "sup" if found["mark"] == "^" else "sub"
        return f"{found['base']}<{tag}>{found['script'].strip('{}')}</{tag}>"

    return FORMULA.sub(written, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Raises an error if a page loads something from another host, or lacks a generated part."""
    for path in sorted(Path(config.site_dir).rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        if found := REMOTE.search(text):
            raise PluginError(f"{path} loads a file from another host: {found[0]}")
        if "<!-- generated:" in text:
            raise PluginError(f"{path} has a generated part that was not filled in")


def _in_repository(page_uri: str, target: str) -> str:
    """Returns the path in the repository that a link on a page of the site refers to."""
    home = OUTSIDE.get(page_uri) or NOTEBOOKS.get(page_uri) or f"docs/{page_uri}"
    return posixpath.normpath(posixpath.join(posixpath.dirname(home), target))


def _in_site(path: str) -> str:
    """Returns the path in the site of a file in the repository."""
    if path == "README.md":
        return "index.md"
    for uri, source in OUTSIDE.items():
        if path == source:
            return uri
    if path.startswith("notebooks/") and path.endswith(".ipynb"):
        return path.removesuffix(".ipynb") + ".md"
    return path.removeprefix("docs/")
