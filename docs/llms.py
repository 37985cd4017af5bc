"""An index of the pages for readers that are programs: `llms.txt` of the site.

Sphinx writes it beside the pages (conf.py); `python docs/llms.py` prints it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

PAGES = Path(__file__).parent
SECTION = re.compile(r"```{toctree}\n:caption: (.+)\n:hidden:\n\n([^`]*)```")
SENTENCE = re.compile(r"^(.+?[.!?])(?: |$)")
USE = """\
Install it with `pip install holdfast` (Python 3.11 or newer). A store is one file.
Every call exists twice: `holdfast.open` blocks, `holdfast.open_async` is awaited, with
the same names. All pages below are plain Markdown."""
# Pages of the site whose text is a file of the first folder.
ABOVE = {
    f"{name}.md" for name in ("architecture", "changelog", "contributing", "security")
}


def index() -> str:
    """The title, what Holdfast is, and every page with its first sentence."""
    start = (PAGES / "index.md").read_text()
    [example] = re.findall(r"```python\n.*?```\n", start, re.DOTALL)
    parts = ["# Holdfast", f"> {_about(start)}", USE, example.rstrip()]
    for caption, names in SECTION.findall(start):
        lines = [_line(PAGES / f"{name}.md") for name in names.split()]
        parts.append("\n".join([f"## {caption}\n", *lines]))
    return "\n\n".join(parts) + "\n"


def _line(page: Path) -> str:
    address = page.relative_to(PAGES)
    if str(address) in ABOVE:
        page = PAGES.parent / f"{page.stem.upper()}.md"
    text = page.read_text()
    title = text.partition("\n")[0].lstrip("# ")
    return f"- [{title}]({address}): {_about(text)}"


def _about(text: str) -> str:
    """The first sentence of a page, without its links."""
    paragraph = next(_paragraphs(text))
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    found = SENTENCE.match(plain)
    return found[1] if found else plain


def _paragraphs(text: str) -> Iterator[str]:
    for part in text.split("\n\n")[1:]:
        if not part.startswith(("#", "```", "|", "!", "<", "-", "1.")):
            yield part


if __name__ == "__main__":
    sys.stdout.write(index())
