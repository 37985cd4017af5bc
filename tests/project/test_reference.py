"""docs/api.md says what the code says now."""

import runpy

import pytest

from support.folders import DOCS

SCRIPT = runpy.run_path(str(DOCS / "reference.py"))


def test_the_reference_is_that_of_the_code():
    page = (DOCS / "api.md").read_text()

    assert SCRIPT["rewritten"](page) == page, "run: make reference"


@pytest.mark.parametrize("name", SCRIPT["holdfast"].__all__)
def test_the_reference_names_every_public_name(name):
    assert f"{name}`" in (DOCS / "api.md").read_text()
