"""docs/mcp.md describes the tools and options that exist."""

from __future__ import annotations

import pytest

from holdfast.tools import TOOLS
from inner.cli import mcp_command
from inner.tools import STORE_TOOLS, overview
from support.folders import DOCS

PAGE = (DOCS / "mcp.md").read_text()


def test_the_table_of_tools_is_that_of_the_registry():
    assert overview((*TOOLS, *STORE_TOOLS)) in PAGE


@pytest.mark.parametrize("option", [o.opts[0] for o in mcp_command.own_params])
def test_every_option_is_explained(option):
    assert f"| `{option}" in PAGE
