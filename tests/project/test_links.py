"""Links between the pages lead somewhere, and every page is in the navigation."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from support.folders import DOCS, ROOT

TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *DOCS.rglob("*.md")])
CHECK = runpy.run_path(str(DOCS / "check_site.py"))
MARKDOWN = MarkdownIt("commonmark").enable("table")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tokens(path: Path) -> list[Token]:
    top = MARKDOWN.parse(path.read_text())
    return [*top, *(inner for token in top for inner in token.children or ())]


def pointers(path: Path) -> list[str]:
    found = [token.attrGet("href") or token.attrGet("src") for token in tokens(path)]
    return [unquote(str(f)) for f in found if f and not re.match("[a-z]+:", str(f))]


def places(path: Path) -> set[str]:
    """The headings of a page, as links name them."""
    found = re.sub("```.*?```", "", path.read_text(), flags=re.DOTALL)
    headings = re.findall("^#+ (.+)$", found, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def is_dead(page: Path, pointer: str) -> bool:
    file, _, place = pointer.partition("#")
    target = (page.parent / file).resolve() if file else page
    return not target.exists() or bool(place and place not in places(target))


def test_every_link_of_a_page_leads_to_a_file_and_a_heading():
    links = [(page, pointer) for page in TEXTS for pointer in pointers(page)]

    assert [(named(page), link) for page, link in links if is_dead(page, link)] == []


def test_every_page_is_in_the_navigation():
    contents = (DOCS / "index.md").read_text()
    navigation = re.findall(r"```{toctree}\n(?::.*\n)*\n([^`]*)```", contents)
    listed = [DOCS / f"{name}.md" for part in navigation for name in part.split()]

    assert sorted(listed) == sorted({*DOCS.rglob("*.md")} - {DOCS / "index.md"})


def test_the_index_for_programs_has_every_page_with_a_sentence_about_it():
    index = runpy.run_path(str(DOCS / "llms.py"))["index"]()

    told = dict(re.findall(r"^- \[.+\]\((.+\.md)\): (.{10,})$", index, re.MULTILINE))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert told.keys() == pages - {"index.md"}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('<a href="other.html#here">', None),
        ('<a href="https://example.org">', None),
        ('<a href="gone.html">', "leads nowhere"),
        ('<a href="other.html#there">', "the page has no such place"),
        ('<a href="#there">', "the page has no such place"),
        ('<script src="https://cdn.example/a.js">', "is loaded from elsewhere"),
        ('<link href="//fonts.example/a.css">', "is loaded from elsewhere"),
        ('<img src="data:image/png;base64,">', None),
    ],
)
def test_the_check_of_the_site_tells_what_is_wrong(written, told, tmp_path):
    (tmp_path / "page.html").write_text(written)
    (tmp_path / "other.html").write_text('<p id="here">')

    found = list(CHECK["problems"](tmp_path))

    assert [line.rpartition(": ")[2] for line in found] == ([told] if told else [])


UNCLEAR = re.compile(r"\b(whoever|nobody|somebody|anew|shall)\b", re.IGNORECASE)


def prose_of(page: Path) -> str:
    """Its own words: code, and what is made from docstrings, is left out."""
    written = page.read_text().partition("<!-- from here on made by")[0]
    return re.sub("```.*?```|`[^`\n]*`", "", written, flags=re.DOTALL)


def test_a_page_says_who_does_something():
    unclear = {named(page): UNCLEAR.findall(prose_of(page)) for page in TEXTS}

    assert {page: words for page, words in unclear.items() if words} == {}
