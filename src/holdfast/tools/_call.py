"""Calls of tools: finding the tool, checking its arguments, running it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from holdfast._engine.context import Context
from holdfast._values.records import checked_name
from holdfast.errors import Closed, HoldfastError, Unstorable
from holdfast.tools._errors import Refusal, as_result, echo, listed, suggestion
from holdfast.tools._schemas import Schema, schema_of
from holdfast.tools._tool import Arguments, Result, Scope, Tool

# A mapping, or the JSON text of one as the providers send it.
Given = Mapping[str, Any] | str | bytes | None

NAMES = frozenset({"agent_id", "conversation_id", "owner", "thread"})

_COMPLAINT = re.compile(r"(?P<what>.*?)(?: - at (?P<path>.*))?", re.DOTALL)
_FIELD = re.compile(
    r"Object (?P<kind>missing|contains).* field `(?P<name>.*)`", re.DOTALL
)
_STEP = re.compile(r"\.(\w+)|(\[)")


class ToolSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The tools that can be called, and the reasons why the others cannot."""

    tools: dict[str, Tool]
    withheld: dict[str, str]
    scope: Scope

    def find(self, name: str) -> Tool:
        """The tool with a name."""
        if name in self.tools:
            return self.tools[name]
        names = list(self.tools)
        if name in self.withheld:
            raise Refusal(
                "tool_unavailable",
                f"{name} cannot be called here: {self.withheld[name]}",
                f"The tools here are {', '.join(names)}.",
            )
        raise Refusal(
            "unknown_tool",
            f"there is no tool {echo(name)}",
            f"{suggestion(name, names)}The tools here are {', '.join(names)}.",
        )

    def schema(self, tool: Tool) -> Schema:
        """The schema of a tool's arguments, without those that the scope fixes."""
        return schema_of(tool.arguments, self.scope.bound)


async def perform(
    context: Context, selection: ToolSelection, name: str, given: Given
) -> Result:
    """The result of a tool; an error of the model or the store is a result too."""
    try:
        tool = selection.find(name)
        arguments = _converted(tool, _mapping(given), selection)
        return await tool.run(context, selection.scope, arguments)
    except Closed:
        raise  # an error of the program: a model cannot correct it
    except (Refusal, HoldfastError) as error:
        return as_result(error)


def check_call(name: object, given: object) -> None:
    """Raise for errors of the program that calls, which a model cannot correct."""
    if type(name) is not str:
        raise Unstorable("name", f"must be text, not {type(name).__name__}")
    if not isinstance(given, Mapping | str | bytes | None):
        kind = type(given).__name__
        raise Unstorable("arguments", f"must be a mapping or JSON text, not {kind}")


# --- arguments ------------------------------------------------------------------------


def _mapping(given: Given) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    # Some models send an empty text to a tool without arguments.
    if given is None or not given.strip():
        return {}
    try:
        found: object = msgspec.json.decode(given)
    except (ValueError, RecursionError) as error:
        raise _broken(f"the arguments are not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise _broken(f"the arguments are {echo(found)} and not an object")
    return cast("dict[str, Any]", found)


def _broken(message: str) -> Refusal:
    hint = 'Pass one complete JSON object, such as {"limit": 10}.'
    return Refusal("invalid_arguments", message, hint)


def _converted(
    tool: Tool, given: dict[str, Any], selection: ToolSelection
) -> Arguments:
    fixed = {
        name: value
        for name, value in selection.scope.bound.items()
        if name in tool.arguments.__struct_fields__
    }
    for name in fixed.keys() & given.keys():
        raise Refusal(
            "invalid_arguments",
            f"{name} is fixed here and cannot be chosen",
            f"Leave {name} out.",
        )
    try:
        return _named(msgspec.convert(given | fixed, tool.arguments))
    except msgspec.ValidationError as error:
        raise _explained(str(error), tool, selection.schema(tool)) from error
    except UnicodeEncodeError as error:
        raise _broken(f"the arguments are not valid text: {error.reason}") from error


def _named(arguments: Arguments) -> Arguments:
    """Arguments, after their ids and names were checked."""
    for name in NAMES.intersection(arguments.__struct_fields__):
        if getattr(arguments, name) is not None:
            checked_name(getattr(arguments, name), name)
    return arguments


def _explained(complaint: str, tool: Tool, schema: Schema) -> Refusal:
    match = _COMPLAINT.fullmatch(complaint)
    assert match is not None
    what, path = match["what"], (match["path"] or "").replace("`", "")
    where = path.removeprefix("$").removeprefix(".")
    field = _FIELD.fullmatch(what)
    if field is None:
        message = f"{where}: {what}" if where else what
        return Refusal("invalid_arguments", message, _about(path, schema))
    name = field["name"]
    if field["kind"] == "missing":
        message = f"{where}.{name} is missing" if where else f"{name} is missing"
        return Refusal("invalid_arguments", message, _about(f"{path}.{name}", schema))
    message = f"{where or tool.name} has no argument {echo(name)}"
    names = list(_node(path, schema)["properties"])
    near = suggestion(name, names, most=2) if names else ""
    return Refusal("invalid_arguments", message, near + _choice(names))


def _choice(names: list[str]) -> str:
    return f"The arguments are {', '.join(names)}." if names else "Pass no arguments."


def _node(path: str, schema: Schema) -> Schema:
    """The schema of the value at a path such as ``$.messages[0].role``."""
    for name, index in _STEP.findall(path):
        inside: Schema = schema.get("properties", {}).get(name, schema)
        schema = schema.get("items", schema) if index else inside
    return schema


def _about(path: str, schema: Schema) -> str:
    """The description of the argument at a path."""
    node, top = _node(path, schema), _STEP.search(path)
    if top is None:
        return _choice(list(schema["properties"]))
    name: str = top[1]
    needed = "required" if name in schema.get("required", ()) else "optional"
    about = f"{name} ({needed}): {schema['properties'][name]['description']}."
    allowed = [value for value in node.get("enum", ()) if value is not None]
    return f"{about} Allowed: {listed(allowed)}." if allowed else about
