"""Looks for dead links, and for what a reader would have to fetch from elsewhere.

`python docs/check_site.py build/site` exits with 1 if the site has either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, as opposed to links that a reader may follow.
LOADED = {"audio", "embed", "iframe", "img", "link", "object", "script", "source"}


class Page(HTMLParser):
    """The names of a page's places, and where it points."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.pointers: list[tuple[str, str]] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.places.add(value or "")
            elif name in ("href", "src", "data") and value:
                self.pointers.append((tag, value))


def problems(site: Path) -> Iterator[str]:
    """Everything that is wrong with a site, one line each."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for tag, pointer in page.pointers:
            if reason := _reason(path, tag, pointer, pages):
                yield f"{path.relative_to(site)}: {pointer}: {reason}"


def _reason(path: Path, tag: str, pointer: str, pages: dict[Path, Page]) -> str:
    address = urlsplit(pointer)
    if address.scheme or address.netloc:
        needed = tag in LOADED and address.scheme != "data"
        return "is loaded from elsewhere" if needed else ""
    target = (path.parent / unquote(address.path)).resolve() if address.path else path
    if not target.is_file():
        return "leads nowhere"
    found = pages.get(target)
    missing = found and address.fragment and address.fragment not in found.places
    return "the page has no such place" if missing else ""


def main(site: str) -> int:
    """Print what is wrong."""
    found = list(problems(Path(site).resolve()))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
