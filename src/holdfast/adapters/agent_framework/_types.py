"""The table of the types that checkpoints and messages can hold."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import agent_framework
from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Message,
    WorkflowEvent,
    WorkflowMessage,
)

from holdfast.operations.objects import (
    Fields,
    NotStorable,
    Shape,
    TypeTable,
    python_shapes,
    shapes,
)

# Objects of a provider in a client's response; the framework does not store them
# either.
_OF_A_RUN = frozenset({"raw_representation", "_operation_state"})
# Dataclasses and enums of the framework; some releases do not have all of them.
_NAMES = (
    "AgentExecutorRequest",
    "AgentExecutorResponse",
    "SubWorkflowRequestMessage",
    "SubWorkflowResponseMessage",
    "WorkflowCheckpoint",
    "WorkflowErrorDetails",
    "WorkflowEventSource",
    "WorkflowInvocationKwargs",
    "WorkflowRunState",
)
_BUILTINS: tuple[Any, ...] = (
    *(object, bool, int, float, str, bytes, list, dict, tuple, set, frozenset),
    *(types.NoneType, Any),
)


class Types(TypeTable):
    """The framework's types; ``allow`` adds classes of the caller."""

    def known(self) -> Mapping[type, Shape]:
        """The shapes of the types that need no permission."""
        named = Shape("type", self._name_of_class, self._named_class)
        return {**_framework_shapes(), type: named}

    def unknown(self, value: object) -> object:
        """The type of a value; a class is stored by its name, with any metaclass."""
        if isinstance(value, type):
            return {**self._name_of_class(value), shapes.TYPE: "type"}
        return super().unknown(value)

    @cached_property
    def _named(self) -> dict[str, type]:
        """The classes that can be values, as the types of a request."""
        return {_full_name(class_): class_ for class_ in (*_BUILTINS, *self.classes)}

    def _name_of_class(self, class_: type) -> Fields:
        name = _full_name(class_)
        if self._named.get(name) is not class_:
            raise NotStorable(f"the class {name} is not known; pass it: allow=[...]")
        return {"name": name}

    def _named_class(self, fields: Fields) -> type:
        return self._named[fields["name"]]


@cache
def _framework_shapes() -> dict[type, Shape]:
    found: dict[Any, Shape] = {
        **python_shapes(),
        types.GenericAlias: Shape("GenericAlias", _alias, _made_alias),
        types.UnionType: Shape("UnionType", _union, _made_union),
    }
    for class_ in _simple_classes():
        found[class_] = shapes.shape_of(class_, class_.__name__)
    for class_ in _orchestration_classes():
        found[class_] = shapes.shape_of(class_, f"orchestrations.{class_.__name__}")
    for make in _BEGINNINGS:
        found[type(make())] = _object(make)
    return found


def _simple_classes() -> Iterator[type]:
    yield type(WorkflowMessage(None, "").type)
    for name in _NAMES:
        class_ = getattr(agent_framework, name, None)
        if class_ is not None:
            yield class_


def _orchestration_classes() -> Iterator[type]:
    """The messages of group chats and the like, if that package is installed."""
    try:
        package = import_module("agent_framework_orchestrations")
    except ImportError:
        return
    for class_ in vars(package).values():
        is_own = getattr(class_, "__module__", "").startswith(f"{package.__name__}.")
        if is_own and isinstance(class_, type) and shapes.is_allowable(class_):
            yield class_


# --- objects of the framework ---------------------------------------------------------

_BEGINNINGS: tuple[Callable[[], Any], ...] = (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    ChatResponse,
    ChatResponseUpdate,
    lambda: Content("error"),
    lambda: Message("user"),
    lambda: WorkflowEvent("started"),
    lambda: WorkflowMessage(None, ""),
)


def _object(make: Callable[[], Any]) -> Shape:
    """The shape of a class by its attributes, without those that are empty at creation.

    A new instance has all attributes of this release; the stored ones are set on it.
    """
    empty: object = make()
    begins = vars(empty)

    def dump(value: object) -> Fields:
        return {
            name: _without_raw(item) if name == "annotations" else item
            for name, item in vars(value).items()
            if name not in _OF_A_RUN and not _is_beginning(item, begins.get(name, ...))
        }

    def load(fields: Fields) -> object:
        made: object = make()
        vars(made).update(fields)
        return made

    return Shape(type(empty).__name__, dump, load)


def _is_beginning(item: object, begins: object) -> bool:
    if item is begins:
        return not isinstance(item, str)  # readers look for a type and a role
    return type(item) is type(begins) and not item and not begins


def _without_raw(annotations: Any) -> object:
    return [
        {name: item for name, item in annotation.items() if name not in _OF_A_RUN}
        for annotation in annotations or ()
    ]


# --- types as values ------------------------------------------------------------------


def _full_name(class_: Any) -> str:
    return f"{class_.__module__}.{class_.__qualname__}"


def _alias(alias: types.GenericAlias) -> Fields:
    return {"origin": alias.__origin__, "args": list(alias.__args__)}


def _made_alias(fields: Fields) -> object:
    return types.GenericAlias(fields["origin"], tuple(fields["args"]))


def _union(union: types.UnionType) -> Fields:
    return {"args": list(union.__args__)}


def _made_union(fields: Fields) -> object:
    first, *others = fields["args"]
    for other in others:
        first |= other
    return first
