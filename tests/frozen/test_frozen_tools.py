"""Models are offered the tools that they are offered today."""

from __future__ import annotations

import json

import frozen
from holdfast.tools import Toolset


def test_tools_take_and_give_json_of_the_frozen_schemas(memory):
    tools = Toolset(memory, threads=True).mcp()

    text = json.dumps(tools, indent=2, ensure_ascii=False)
    frozen.compare("json/tools.json", f"{text}\n")
