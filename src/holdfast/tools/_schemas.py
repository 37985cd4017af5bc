"""JSON schemas of arguments, in the dialects that the providers accept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import msgspec

Schema: TypeAlias = dict[str, Any]

# Strict providers refuse these keywords. The descriptions name the limits too, and
# every call is checked against them.
LIMITS = frozenset({"minLength", "maxLength", "minimum", "maximum"})
NOISE = frozenset({"title", "default", "anyOf"})


def schema_of(arguments: type[msgspec.Struct], without: Collection[str] = ()) -> Schema:
    """The schema of a struct without references, and without some of its fields."""
    _, named = msgspec.json.schema_components([arguments], ref_template="{name}")
    found = _cleaned(named[arguments.__name__], named)
    # The docstring of the struct is not meant for a model.
    found.pop("description", None)
    for name in without:
        found["properties"].pop(name, None)
    found["required"] = [name for name in found["required"] if name not in without]
    return found if found["required"] else _but(found, ("required",))


def _cleaned(node: Schema, named: dict[str, Schema]) -> Schema:
    if "$ref" in node:
        return _cleaned(named[node["$ref"]], named)
    found = _but(node, NOISE)
    if "anyOf" in node:
        found |= _nullable(node["anyOf"], named)
    elif "enum" in found:
        found = {"type": "string", **found}
    if "properties" in node:
        parts: dict[str, Schema] = node["properties"]
        found["properties"] = {n: _cleaned(part, named) for n, part in parts.items()}
    if "items" in node:
        found["items"] = _cleaned(node["items"], named)
    return found


def _nullable(choices: list[Schema], named: dict[str, Schema]) -> Schema:
    """A type or null as a list of types, which is shorter than ``anyOf``."""
    [choice] = [choice for choice in choices if choice != {"type": "null"}]
    found = _cleaned(choice, named)
    found["type"] = [found["type"], "null"]
    if "enum" in found:
        found["enum"] = [*found["enum"], None]
    return found


def is_closed(schema: Schema) -> bool:
    """True if no object in it accepts any keys."""
    parts: list[Schema] = [*schema.get("properties", {}).values()]
    parts += [schema["items"]] if "items" in schema else []
    is_free = "object" in schema.get("type", ()) and "properties" not in schema
    return not is_free and all(map(is_closed, parts))


def all_required(schema: Schema) -> Schema:
    """A schema for OpenAI's strict mode: every key is required, null means left out."""

    def change(node: Schema) -> Schema:
        found = _but(node, LIMITS)
        if "properties" in found:
            found["required"] = list(found["properties"])
        return found

    return _everywhere(schema, change)


def never_null(schema: Schema) -> Schema:
    """A schema for Anthropic's strict mode, which allows few choices between types."""

    def change(node: Schema) -> Schema:
        found = _but(node, LIMITS)
        if "null" in found["type"]:
            found["type"] = found["type"][0]
        if "enum" in found:
            found["enum"] = [value for value in found["enum"] if value is not None]
        return found

    return _everywhere(schema, change)


def briefly(schema: Schema, evident: frozenset[str]) -> Schema:
    """A schema for MCP: single types, and no description that repeats a name."""

    def change(node: Schema) -> Schema:
        found = _but(node, {*LIMITS, "additionalProperties"})
        if "null" in found["type"]:
            found["type"] = found["type"][0]
        if "enum" in found:
            found["enum"] = [value for value in found["enum"] if value is not None]
        return found

    brief = _everywhere(schema, change)
    for name in evident & brief["properties"].keys():
        brief["properties"][name].pop("description", None)
    return brief


def _but(node: Schema, keys: Collection[str]) -> Schema:
    return {key: value for key, value in node.items() if key not in keys}


def _everywhere(node: Schema, change: Callable[[Schema], Schema]) -> Schema:
    found = dict(node)
    if "properties" in node:
        parts: dict[str, Schema] = node["properties"]
        found["properties"] = {n: _everywhere(p, change) for n, p in parts.items()}
    if "items" in node:
        found["items"] = _everywhere(node["items"], change)
    return change(found)
