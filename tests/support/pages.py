"""The pages of the documentation: their programs, and what these are said to print."""

from __future__ import annotations

import re
from pathlib import Path

from support.folders import DOCS, ROOT, TESTS
from support.programs import run_and_read

BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)


def page_of(framework: str) -> Path:
    """The page of a framework, or of its recipe."""
    name = framework.replace("_", "-") + ".md"
    pages = [path for path in (DOCS / name, DOCS / "recipes" / name) if path.exists()]
    [page] = pages
    return page


# The tests of a framework that has an environment of its own run its page there; the
# programs of the tutorial are several, which test_package.py runs.
APART = {
    page_of(path.parent.name) for path in TESTS.glob("adapters/*/requirements.txt")
} | {DOCS / "tutorial.md"}
PAGES = sorted(
    page
    for page in {ROOT / "README.md", *DOCS.rglob("*.md")} - APART
    if "```python\n" in page.read_text()
)


def shown(page: Path) -> str:
    """What a page shows as printed by its programs."""
    return "".join(output for _, output in BLOCK.findall(page.read_text()))


def code_of(page: Path) -> str:
    """The programs of a page as one."""
    return "\n".join(code for code, _ in BLOCK.findall(page.read_text()))


def printed(page: Path, folder: Path) -> str:
    """What the programs of a page print, run as one in a folder."""
    status, out, err = run_and_read("page_code", page, folder)
    assert status == 0, err
    return out
