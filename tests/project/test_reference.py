"""docs/api.md says what the code says now."""

import inspect
import re
import runpy

import pytest

import holdfast
from holdfast import Store, Thread
from holdfast.operations import OpenOptions
from support.folders import DOCS
from support.handles import Conversations

SCRIPT = runpy.run_path(str(DOCS / "reference.py"))


def test_the_reference_is_that_of_the_code():
    page = (DOCS / "api.md").read_text()

    assert SCRIPT["rewritten"](page) == page, "run: make reference"


@pytest.mark.parametrize("name", holdfast.__all__)
def test_the_reference_names_every_public_name(name):
    assert f"{name}`" in (DOCS / "api.md").read_text()


@pytest.mark.parametrize("option", OpenOptions.__annotations__)
def test_opening_explains_every_option(option):
    assert f"``{option}" in (inspect.getdoc(holdfast.open) or "")


@pytest.mark.parametrize("kind", [Store, Thread, Conversations])
def test_the_reference_names_every_method_and_the_options_of_each(kind):
    page = (DOCS / "api.md").read_text()
    for name, method in vars(kind).items():
        if not name.startswith("_") and inspect.isfunction(method):
            assert f"#### `{kind.__name__}.{name}`" in page
            for options in re.findall(r"Unpack\[(\w+)\]", str(method.__annotations__)):
                assert f"### `{options}`" in page
