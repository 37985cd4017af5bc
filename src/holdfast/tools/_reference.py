"""The reference of the tools as Markdown, for people."""

from __future__ import annotations

import re
from collections.abc import Iterable

from holdfast.tools._schemas import Schema
from holdfast.tools._tool import Tool

HEAD = "| argument | type | |\n|---|---|---|"


def reference(tools: Iterable[Tool]) -> str:
    """The description and the arguments of every tool, as Markdown."""
    return "\n\n".join(map(_section, tools)) + "\n"


def overview(tools: Iterable[Tool]) -> str:
    """A row of a table for every tool, with the first sentence of its description."""
    rows = [
        f"| `{tool.name}` | {_marks(tool).lower()} | {_first(tool.description)} |"
        for tool in tools
    ]
    return "\n".join(rows) + "\n"


def _first(description: str) -> str:
    return re.split(r"(?<=[.:]) ", description)[0].rstrip(".:")


def _section(tool: Tool) -> str:
    rows = [_row(name, tool.schema) for name in tool.schema["properties"]]
    parts = [f"### `{tool.name}`", f"*{_marks(tool)}.* {tool.description}"]
    return "\n\n".join([*parts, "\n".join([HEAD, *rows])] if rows else parts)


def _marks(tool: Tool) -> str:
    if tool.read_only:
        return "Only reads"
    kind = "Destructive" if tool.destructive else "Changes"
    return f"{kind}, {'safe to repeat' if tool.idempotent else 'another one each time'}"


def _row(name: str, schema: Schema) -> str:
    about: Schema = schema["properties"][name]
    needed = "required" if name in schema.get("required", ()) else "optional"
    return f"| `{name}` | {_type(about)}, {needed} | {about['description']} |"


def _type(about: Schema) -> str:
    if "enum" in about:
        return ", ".join(f"`{value}`" for value in about["enum"] if value is not None)
    kind: str = about["type"] if isinstance(about["type"], str) else about["type"][0]
    if "items" not in about:
        return kind
    items: Schema = about["items"]
    fields = " of " + ", ".join(f"`{name}`" for name in items.get("properties", ()))
    return f"{kind} of {items['type']}s{fields if 'properties' in items else ''}"
