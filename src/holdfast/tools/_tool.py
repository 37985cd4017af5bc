"""A tool: its description, its arguments, and the function it runs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeAlias, get_type_hints

import msgspec

from holdfast._engine.context import Context
from holdfast._values.records import ThreadRecord
from holdfast._values.typed import prepare
from holdfast.tools._schemas import Schema, schema_of

Result: TypeAlias = dict[str, Any]

# The default and the largest size of a page of any list.
DEFAULT_LIMIT, MOST = 20, 500


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a tool; an optional one accepts null too."""


def _about(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


Id = Annotated[str, msgspec.Meta(min_length=1)]
AgentId = Annotated[Id, _about("Id of the agent")]
ConversationId = Annotated[Id, _about("Id of the conversation")]
Limit = Annotated[
    Annotated[int, msgspec.Meta(ge=1, le=MOST)] | None,
    _about(f"1 to {MOST}, {DEFAULT_LIMIT} by default"),
]
Cursor = Annotated[str | None, _about("Cursor of the result before")]
Part = Annotated[
    str | None, _about("Only this: a value or value.key, such as messages.12")
]


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The reach of a model: one agent, one user, both, or everything."""

    agent: str | None = None
    owner: str | None = None

    @property
    def bound(self) -> dict[str, str]:
        """The arguments that the scope fixes, which the model cannot choose."""
        chosen = {"agent_id": self.agent, "owner": self.owner}
        return {name: value for name, value in chosen.items() if value is not None}

    def holds(self, thread: ThreadRecord) -> bool:
        """True if a thread is within it."""
        is_agents = self.agent is None or thread.agent == self.agent
        return is_agents and (self.owner is None or thread.owner == self.owner)


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One of the operations a model can call, described once for every provider.

    A ``destructive`` tool removes what cannot be restored. An ``idempotent`` one
    changes nothing more when it is repeated. A ``per_owner`` one can be limited to the
    conversations of one user.
    """

    run: Callable[[Context, Scope, Any], Coroutine[Any, Any, Result]]
    arguments: type[Arguments]
    description: str
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = True
    per_owner: bool = False

    @property
    def name(self) -> str:
        """The name that a model calls it by."""
        return self.run.__name__

    @property
    def schema(self) -> Schema:
        """The JSON schema of its arguments."""
        return schema_of(self.arguments)


def tool(
    description: str, **marks: bool
) -> Callable[[Callable[..., Coroutine[Any, Any, Result]]], Tool]:
    """Make a tool of a function; the type of its ``given`` is the tool's arguments."""

    def made(run: Callable[..., Coroutine[Any, Any, Result]]) -> Tool:
        arguments = get_type_hints(run)["given"]
        prepare(arguments)
        return Tool(run=run, arguments=arguments, description=description, **marks)

    return made
