"""Tools, calls and answers in the formats of the providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, cast, get_type_hints

import msgspec

from holdfast.errors import Unstorable
from holdfast.tools._brief import BRIEF, EVIDENT
from holdfast.tools._call import ToolSelection
from holdfast.tools._conversation_save import NewMessage
from holdfast.tools._schemas import (
    Schema,
    all_required,
    briefly,
    is_closed,
    never_null,
)
from holdfast.tools._tool import Result, Tool

Form = dict[str, Any]
INDENT = "    "


# --- tools ----------------------------------------------------------------------------


def for_chat(tool: Tool, schema: Schema, *, strict: bool) -> Form:
    """A tool of OpenAI Chat."""
    return {"type": "function", "function": _function(tool, schema, strict=strict)}


def for_responses(tool: Tool, schema: Schema, *, strict: bool) -> Form:
    """A tool of OpenAI Responses."""
    return {"type": "function", **_function(tool, schema, strict=strict)}


def _function(tool: Tool, schema: Schema, *, strict: bool) -> Form:
    is_strict = strict and is_closed(schema)
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": all_required(schema) if is_strict else schema,
        # Always given: Responses would default to true.
        "strict": is_strict,
    }


def for_anthropic(tool: Tool, schema: Schema, *, strict: bool) -> Form:
    """A tool of Anthropic."""
    form: Form = {"name": tool.name, "description": tool.description}
    if strict and is_closed(schema):
        return {**form, "input_schema": never_null(schema), "strict": True}
    return {**form, "input_schema": schema}


def for_mcp(tool: Tool, schema: Schema) -> Form:
    """A tool as the MCP protocol lists it."""
    brief = BRIEF[tool.name]
    return {
        "name": tool.name,
        "description": brief.text,
        "inputSchema": briefly(schema, EVIDENT),
        "outputSchema": brief.output,
        "annotations": _annotations(tool),
    }


def _annotations(tool: Tool) -> Form:
    """The hints about a tool; those that a client assumes anyway are left out."""
    if tool.read_only:
        return {"readOnlyHint": True, "openWorldHint": False}
    idempotent = {"idempotentHint": True} if tool.idempotent else {}
    gentle = {} if tool.destructive else {"destructiveHint": False}
    return {**gentle, **idempotent, "openWorldHint": False}


# --- calls and answers ----------------------------------------------------------------


class ToolRequest(msgspec.Struct, frozen=True):
    """The call of a model, and the function that formats its answer."""

    id: str
    name: str
    arguments: Any
    answer: Callable[[str, Result], Form]


def read_call(call: object) -> ToolRequest:
    """A call in the format of any provider."""
    dump = getattr(call, "model_dump", None)
    fields: object = dump() if callable(dump) else call
    read = _READERS.get(_kind(fields))
    if read is None:
        raise Unstorable(
            "call", "is not a tool call, a function_call item or a tool_use block"
        )
    try:
        return read(cast("Mapping[str, Any]", fields))
    except (KeyError, TypeError) as error:
        raise Unstorable("call", f"lacks {error}; pass it as it came") from error


def _kind(fields: object) -> object:
    if not isinstance(fields, Mapping):
        return None
    named = cast("Mapping[str, object]", fields)
    return "function" if "function" in named else named.get("type")


def _chat(fields: Mapping[str, Any]) -> ToolRequest:
    called: Mapping[str, Any] = fields["function"]
    return ToolRequest(fields["id"], called["name"], called["arguments"], _chat_answer)


def _chat_answer(id_: str, result: Result) -> Form:
    return {"role": "tool", "tool_call_id": id_, "content": _text(result)}


def _responses(fields: Mapping[str, Any]) -> ToolRequest:
    return ToolRequest(
        fields["call_id"], fields["name"], fields["arguments"], _responses_answer
    )


def _responses_answer(id_: str, result: Result) -> Form:
    return {"type": "function_call_output", "call_id": id_, "output": _text(result)}


def _anthropic(fields: Mapping[str, Any]) -> ToolRequest:
    return ToolRequest(fields["id"], fields["name"], fields["input"], _anthropic_answer)


def _anthropic_answer(id_: str, result: Result) -> Form:
    form = {"type": "tool_result", "tool_use_id": id_, "content": _text(result)}
    return {**form, "is_error": True} if "error" in result else form


def _text(result: Result) -> str:
    return msgspec.json.encode(result).decode()


_READERS: dict[object, Callable[[Mapping[str, Any]], ToolRequest]] = {
    "function": _chat,
    "function_call": _responses,
    "tool_use": _anthropic,
}


# --- plain functions, for frameworks that look at signatures and docstrings -----------


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
