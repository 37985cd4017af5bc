"""What the providers' own libraries say about a request.

Their types have lazy iterables and allow unknown fields, so that pydantic would check
little. Here the same types are made again with lists, and without unknown fields.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin

from anthropic.types import MessageParam, TextBlockParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict, get_type_hints
from typing_extensions import is_typeddict as is_typed_dict

WRAPPERS = (Required, NotRequired, Annotated)


@cache
def strict(type_: Any, *, closed: bool) -> Any:
    """A type with lists for iterables, and without unknown fields if it is closed."""
    if is_typed_dict(type_):
        return _strict_fields(type_, closed)
    origin, inner = get_origin(type_), get_args(type_)
    if origin is None or not inner:
        return type_
    made = [strict(arg, closed=closed) for arg in inner]
    if origin in (Union, types.UnionType):
        return Union[tuple(made)]  # noqa: UP007 - of a tuple
    if origin in WRAPPERS:
        return made[0]
    is_list = origin in (Iterable, list) or origin.__name__ == "SequenceNotStr"
    return types.GenericAlias(list, (made[0],)) if is_list else type_


def _strict_fields(type_: Any, closed: bool) -> Any:
    hints = get_type_hints(type_, include_extras=True)
    fields = {
        # The annotations are texts, so that the class itself does not know it.
        name: (Required if get_origin(hint) is Required else NotRequired)[
            strict(hint, closed=closed)
        ]
        for name, hint in hints.items()
    }
    extra = "forbid" if closed else "ignore"
    return with_config(extra=extra, arbitrary_types_allowed=True)(
        TypedDict(type_.__name__, fields)
    )


@cache
def adapter(name: str, *, closed: bool) -> TypeAdapter[Any]:
    """What checks a list of messages for a provider."""
    types_ = {
        "openai": list[strict(ChatCompletionMessageParam, closed=closed)],
        "responses": list[strict(ResponseInputItemParam, closed=closed)],
        "anthropic": list[strict(MessageParam, closed=closed)],
        "system": str | list[strict(TextBlockParam, closed=closed)],
    }
    return TypeAdapter(types_[name])


def check(name: str, request: Any, *, closed: bool = True) -> None:
    """Raises if a request is not of the provider's types."""
    if name != "anthropic":
        adapter(name, closed=closed).validate_python(request, strict=True)
        return
    assert request.keys() <= {"system", "messages"}
    adapter(name, closed=closed).validate_python(request["messages"], strict=True)
    if "system" in request:
        adapter("system", closed=closed).validate_python(request["system"], strict=True)
