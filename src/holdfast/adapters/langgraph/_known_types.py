"""The types that need no permission: those of LangGraph, LangChain and Python."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

import langchain_core.messages.base
import langgraph.types
from langchain_core import agents, messages, outputs, prompt_values
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.documents.base import Blob
from langchain_core.messages import BaseMessage
from langchain_core.runnables.utils import AddableDict
from langgraph.checkpoint.serde import types as serde_types
from langgraph.store.base import GetOp, Item, SearchItem

from holdfast.operations.objects import Fields, Shape, python_shapes, shape_of_one
from holdfast.operations.objects import shapes as _shapes

_ROLES = {
    "Human": "user",
    "AI": "assistant",
    "System": "system",
    "Tool": "tool",
    "Function": "tool",
}
# Private, but savers have to store it; added in LangGraph 1.2.
_SNAPSHOT: Any = getattr(serde_types, "_DeltaSnapshot", None)
# The type of `message.text`.
_TEXT: Any = getattr(langchain_core.messages.base, "TextAccessor", None)
# Stands for "no default", because it equals no value of a field.
_NO_DEFAULT = object()
# Types of LangChain that its chains, agents and models pass on, beside messages.
_OF_LANGCHAIN: tuple[type, ...] = (
    agents.AgentAction,
    agents.AgentActionMessageLog,
    agents.AgentFinish,
    agents.AgentStep,
    outputs.ChatGeneration,
    outputs.ChatGenerationChunk,
    outputs.ChatResult,
    outputs.Generation,
    outputs.GenerationChunk,
    outputs.LLMResult,
    outputs.RunInfo,
    prompt_values.ChatPromptValue,
    prompt_values.ChatPromptValueConcrete,
    prompt_values.ImagePromptValue,
    prompt_values.StringPromptValue,
    Blob,
    InMemoryChatMessageHistory,
)


@cache
def shapes() -> dict[type, Shape]:
    """The shapes of all types that need no permission."""
    return {**python_shapes(), **_of_langchain(), **_of_langgraph()}


# --- LangChain ------------------------------------------------------------------------


def _of_langchain() -> dict[type, Shape]:
    found = {c: _shapes.shape_of(c, c.__name__) for c in (Document, *_OF_LANGCHAIN)}
    found[AddableDict] = shape_of_one(AddableDict, dict)
    if _TEXT is not None:
        found[_TEXT] = _shapes.shape_of(_TEXT, "TextAccessor")
    for name in messages.__all__:
        class_: object = getattr(messages, name)
        if isinstance(class_, type) and issubclass(class_, BaseMessage):
            found[class_] = _message(class_)
    return found


def _message(class_: type[BaseMessage]) -> Shape:
    """The shape of a message: fields with their default are left out, a role added."""
    name = class_.__name__
    role = _ROLES.get(name.removesuffix("Chunk").removesuffix("Message"))
    shown = {} if role is None or "role" in class_.model_fields else {"role": role}
    beginnings = dict(_shapes.beginnings(class_))

    def dump(message: BaseMessage) -> Fields:
        found: Fields = {**shown}
        for field, value in message.__dict__.items():
            begins = beginnings.get(field, _NO_DEFAULT)
            if value is begins:
                continue
            if not (value or begins) and type(value) is type(begins):
                continue
            found[field] = value
        if message.__pydantic_extra__ or message.__pydantic_private__:
            found |= _shapes.beside(message)
        return found

    return Shape(name, dump, _shapes.model_loader(class_))


# --- LangGraph ------------------------------------------------------------------------


def _of_langgraph() -> dict[type, Shape]:
    found: dict[type, Shape] = {
        langgraph.types.Send: _send(),
        GetOp: _shapes.shape_of(GetOp, "GetOp"),
        Item: _item(Item, ("value", "key", "namespace", "created_at", "updated_at")),
        SearchItem: _item(
            SearchItem,
            ("value", "key", "namespace", "created_at", "updated_at", "score"),
        ),
    }
    for name in (
        "Interrupt",
        "Command",
        "Overwrite",
        "TimeoutPolicy",
        "StateSnapshot",
        "PregelTask",
    ):
        class_ = getattr(langgraph.types, name, None)
        if class_ is not None:
            found[class_] = _shapes.shape_of(class_, name)
    if _SNAPSHOT is not None:
        found[_SNAPSHOT] = _shapes.shape_of(_SNAPSHOT, "DeltaSnapshot")
    return found


def snapshot(value: object) -> object:
    """LangGraph's wrapper for the whole value of a delta channel."""
    if _SNAPSHOT is None:
        raise ValueError("it is of a newer LangGraph; upgrade langgraph")
    return _SNAPSHOT(value)


def _send() -> Shape:
    def dump(send: langgraph.types.Send) -> Fields:
        timeout = getattr(send, "timeout", None)
        beside = {} if timeout is None else {"timeout": timeout}
        return {"node": send.node, "arg": send.arg, **beside}

    return Shape("Send", dump, lambda fields: langgraph.types.Send(**fields))


def _item(class_: Any, names: tuple[str, ...]) -> Shape:
    def dump(item: object) -> Fields:
        return {name: getattr(item, name) for name in names}

    return Shape(class_.__name__, dump, lambda fields: class_(**fields))


# --- Python ---------------------------------------------------------------------------


def constructors() -> dict[tuple[str, str], Callable[..., Any]]:
    """The constructors in data of LangGraph's serializer, for types of the codec."""
    plain = (datetime, date, time, timedelta, UUID, Decimal, set, frozenset)
    found: dict[tuple[str, str], Callable[..., Any]] = {
        (class_.__module__, class_.__name__): class_ for class_ in plain
    }
    found["re", "compile"] = re.compile
    # Paths become those of this system; Python 3.13 has them in another module.
    for module in ("pathlib", "pathlib._local"):
        for name in ("Path", "PosixPath", "WindowsPath"):
            found[module, name] = pathlib.Path
    return found
