"""What the documents say is true: their code runs and prints what they show."""

from __future__ import annotations

import inspect
import re
import sys

import pytest

import holdfast
from support.folders import DOCS, ROOT
from support.handles import BLOCKING, CHANGES
from support.pages import PAGES, printed, shown

README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_prints_what_the_page_shows(page, tmp_path):
    assert printed(page, tmp_path) == shown(page)


def test_the_readme_fits_its_size_and_names_the_two_commands():
    assert len(README.splitlines()) < 150
    assert "make demo" in README
    assert "make test" in README


def test_the_architecture_is_a_map_of_at_most_1500_words():
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) <= 1500


@pytest.mark.parametrize(
    "decision", sorted(DOCS.glob("decisions/[0-9]*.md")), ids=lambda page: page.stem
)
def test_a_decision_is_short_and_names_its_price(decision):
    text = decision.read_text()

    headings = re.findall("^## (.+)$", text, re.MULTILINE)
    assert headings == ["Context", "Decision", "Price"]
    assert len(text.split()) < 200


@pytest.mark.parametrize("name", holdfast.__all__)
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(holdfast, name))


@pytest.mark.parametrize("kind", [*BLOCKING, *CHANGES])
def test_every_public_method_says_what_it_promises(kind):
    for name, member in vars(kind).items():
        if not name.startswith("_"):
            assert inspect.getdoc(member), f"{kind.__name__}.{name}"


def test_every_error_is_drawn_in_the_tree():
    tree = inspect.getdoc(sys.modules["holdfast.errors"]) or ""

    for name in holdfast.errors.__all__:
        assert name in tree
