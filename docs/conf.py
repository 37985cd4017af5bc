"""How Sphinx makes the site of these pages: `make docs`.

Every page is plain Markdown; `index.md` alone has directives, for the navigation.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parent
ROOT = PAGES.parent
SOURCE = ROOT / "src" / "holdfast" / "__init__.py"
# Texts of the repository's first folder that are pages of the site, too.
ABOVE = ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY")
LINK_ABOVE = re.compile(rf"(\]\((?:\.\./)*)\.\./({'|'.join(ABOVE)})\.md")

project = "Holdfast"
release = re.findall(r'__version__ = "(.+)"', SOURCE.read_text())[0]
extensions = ["myst_parser"]
myst_heading_anchors = 4  # as in the references of the API and the command line
smartquotes = False  # `--dry-run` is an option and not a dash
html_theme = "furo"
html_title = f"Holdfast {release}"
html_show_search_summary = False  # it would fetch, which a browser refuses in a folder
html_copy_source = False  # the pages themselves are beside what is made of them


def setup(sphinx: Any) -> None:
    """Called by Sphinx."""
    sphinx.connect("source-read", lambda _, page, text: _read(page, text))
    sphinx.connect("build-finished", copy_texts)


def _read(page: str, text: list[str]) -> None:
    if page.upper() in ABOVE:
        text[0] = (ROOT / f"{page.upper()}.md").read_text()
        text[0] = re.sub(r"\]\((?!docs/|[a-z]+:|#)", "](../", text[0])
        text[0] = text[0].replace("](docs/", "](")
    text[0] = LINK_ABOVE.sub(lambda found: f"{found[1]}{found[2].lower()}.md", text[0])


def copy_texts(sphinx: Any, failure: Exception | None) -> None:
    """Put the text of each page beside it, for readers that are programs."""
    if failure is None:
        made: str = runpy.run_path(str(PAGES / "llms.py"))["index"]()
        (Path(sphinx.outdir) / "llms.txt").write_text(made)
        for page in PAGES.rglob("*.md"):
            text = [page.read_text()]
            name = page.relative_to(PAGES)
            _read(str(name.with_suffix("")), text)
            (Path(sphinx.outdir) / name).write_text(text[0])
