"""Tools as plain functions, for frameworks that look at signatures and docstrings."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, get_type_hints

from holdfast.tools._call import ToolSelection
from holdfast.tools._conversation_save import NewMessage
from holdfast.tools._schemas import Schema
from holdfast.tools._tool import Result, Tool

INDENT = "    "


def signature_of(tool: Tool, selection: ToolSelection) -> Signature:
    """The signature of the function for a tool."""
    schema, hints = selection.schema(tool), get_type_hints(tool.arguments)
    required: list[str] = schema.get("required", [])
    parameters = [
        Parameter(
            name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if name in required else None,
            annotation=_annotation(hints[name]),
        )
        for name in schema["properties"]
    ]
    return Signature(parameters, return_annotation=Result)


def _annotation(hint: Any) -> Any:
    # Frameworks do not know our struct; the description explains its fields.
    return list[dict[str, str]] | None if hint == list[NewMessage] | None else hint


def describe(
    function: Callable[..., Any], tool: Tool, signature: Signature, schema: Schema
) -> None:
    """Give a function the name, docstring and signature of a tool."""
    function.__name__ = function.__qualname__ = tool.name
    function.__module__ = "holdfast.tools"
    function.__doc__ = _docstring(tool, schema)
    function.__annotations__ = {
        name: parameter.annotation for name, parameter in signature.parameters.items()
    } | {"return": signature.return_annotation}
    # `inspect.signature` looks here first; type checkers do not know the attribute.
    vars(function)["__signature__"] = signature


def _docstring(tool: Tool, schema: Schema) -> str:
    properties: dict[str, Schema] = schema["properties"]
    lines = [f"{name}: {about['description']}" for name, about in properties.items()]
    listed = "".join(f"\n{INDENT}{line}" for line in lines)
    return f"{tool.description}\n\nArgs:{listed}" if lines else tool.description
