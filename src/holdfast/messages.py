"""Messages, tool calls and attachments as typed records.

They are for programs without a message type of their own. Wherever a `Message` is
accepted, a mapping in the format of OpenAI or Anthropic is too, and is stored as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NotRequired, Self, TypeAlias, TypedDict, cast

import msgspec

from holdfast._messages import transcript
from holdfast._messages.fields import from_plain
from holdfast._messages.fields import to_plain as plain_fields
from holdfast._messages.loose import parts_of
from holdfast._values.clock import now, uuid7
from holdfast._values.nearest import nearest
from holdfast.errors import Unstorable

__all__ = [
    "AnthropicRequest",
    "AnyMessage",
    "Attachment",
    "Message",
    "ToolCall",
    "to_anthropic",
    "to_openai",
    "to_openai_responses",
    "to_plain",
]

# The key that marks the mapping of a `Message`; its value is the version of the format.
MARK = "holdfast"
VERSION = 1

# The status of a tool call. Others, of a newer version, are kept as they are.
PENDING, RUNNING, COMPLETED, FAILED = "pending", "running", "completed", "failed"

# The roles that new messages may have: ours, and those of the providers' formats.
ROLES = (
    "user",
    "assistant",
    "system",
    "tool",
    "developer",
    "function",
    "model",
    "human",
    "ai",
)


class ToolCall(msgspec.Struct, kw_only=True):
    """A tool call of the model; ``status`` pending, running, completed or failed."""

    id: str = msgspec.field(default_factory=uuid7)
    name: str
    arguments: Any = msgspec.field(default_factory=dict[str, Any])
    status: str = PENDING
    result: Any = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Attachment(msgspec.Struct, kw_only=True):
    """Something that belongs to a message: an image, audio, video, file or code.

    ``content`` is text or bytes, or ``None`` if it is at a ``url``; of an image, audio
    or video it may be base64, too. A conversation stores equal large contents once.
    """

    kind: str = "file"
    name: str = ""
    mime_type: str = ""
    content: str | bytes | None = None
    url: str | None = None
    size: int | None = None
    id: str = msgspec.field(default_factory=uuid7)
    extra: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Message(msgspec.Struct, kw_only=True):
    """One message: its role, its text or parts, its tool calls and attachments.

    ``parent`` is the id of the message it answers, ``at`` microseconds UTC.
    """

    role: str
    content: Any = ""
    id: str = msgspec.field(default_factory=uuid7)
    at: int = msgspec.field(default_factory=now)
    name: str | None = None
    tool_calls: list[ToolCall] = msgspec.field(default_factory=list[ToolCall])
    tool_call_id: str | None = None
    attachments: list[Attachment] = msgspec.field(default_factory=list[Attachment])
    reasoning: str | None = None
    tokens: int | None = None
    parent: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    extra: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @classmethod
    def user(cls, content: str | list[Any], **fields: Any) -> Self:
        """A message of the user."""
        return cls(role="user", content=content, **fields)

    @classmethod
    def assistant(
        cls,
        content: str | list[Any] = "",
        *,
        tool_calls: Sequence[ToolCall] = (),
        **fields: Any,
    ) -> Self:
        """A reply of the model, with the tool calls it makes."""
        return cls(
            role="assistant", content=content, tool_calls=list(tool_calls), **fields
        )

    @classmethod
    def system(cls, content: str | list[Any], **fields: Any) -> Self:
        """A message with instructions for the model."""
        return cls(role="system", content=content, **fields)

    @classmethod
    def tool_result(cls, call: ToolCall | str, content: Any, **fields: Any) -> Self:
        """The result of a tool call."""
        id_ = call.id if isinstance(call, ToolCall) else call
        return cls(role="tool", tool_call_id=id_, content=content, **fields)

    @property
    def text(self) -> str:
        """The text that a person would read."""
        return transcript.text_of(stored(self))


# What conversations hold: `Message` records, and mappings as they were given.
AnyMessage: TypeAlias = Message | dict[str, Any]


def stored(message: object) -> dict[str, Any]:
    """A message as the mapping that is stored."""
    if isinstance(message, Message):
        return _stored(message)
    if type(message) is dict:
        return cast("dict[str, Any]", message)
    kind = type(message).__name__
    raise Unstorable(
        "message", f"{kind} is neither a Message nor a dict; pass its .model_dump()"
    )


def accepted(message: object) -> dict[str, Any]:
    """A new message as the mapping that is stored; an unknown role is refused.

    Messages that are stored already may have any role: a newer version or an importer
    wrote them.
    """
    kept = stored(message)
    role: object = kept.get("role")
    if role is None or role in ROLES:
        return kept
    near = nearest(str(role), ROLES, most=1)
    meant = f"did you mean {near[0]!r}?" if near else "pass a known role."
    raise Unstorable("role", f"{role!r} is no role; {meant} Roles: {', '.join(ROLES)}")


def _stored(message: Message) -> dict[str, Any]:
    plain: dict[str, Any] = {MARK: VERSION, **plain_fields(message)}
    for name in ("tool_calls", "attachments"):
        if name in plain:
            plain[name] = _stored_parts(plain[name])
    return plain


def _stored_parts(parts: Any) -> Any:
    if not any(isinstance(part, ToolCall | Attachment) for part in parts_of(parts)):
        return parts  # of a newer version
    return [
        plain_fields(part) if isinstance(part, ToolCall | Attachment) else part
        for part in parts
    ]


def restored(kept: Mapping[str, Any] | str) -> AnyMessage:
    """The inverse of `stored`; plain threads may have texts among their messages."""
    if isinstance(kept, str):
        return cast("AnyMessage", kept)
    if kept.get(MARK) != VERSION or not isinstance(kept.get("role"), str):
        return dict(kept)
    plain = {name: value for name, value in kept.items() if name != MARK}
    plain["tool_calls"] = _parts(plain.get("tool_calls"), ToolCall)
    plain["attachments"] = _parts(plain.get("attachments"), Attachment)
    return from_plain(Message, {"id": "", "at": 0, **plain})


def _parts(kept: Any, type_: type[ToolCall | Attachment]) -> Any:
    if type(kept) is not list:
        return [] if kept is None else kept
    return [_part(part, type_) for part in cast("Sequence[Any]", kept)]


def _part(kept: Any, type_: type[ToolCall | Attachment]) -> Any:
    if type(kept) is not dict:
        return kept
    needed: dict[str, Any] = {"id": "", "name": ""}
    return from_plain(type_, needed | kept)


# --- for models -----------------------------------------------------------------------
#
# What writes them is loaded when it is used: not every program asks a model. The types
# are loose, so that type checkers accept them for the types of a provider's library.


class AnthropicRequest(TypedDict):
    """The part of a request to Anthropic that is the transcript."""

    system: NotRequired[Any]
    messages: list[Any]


def to_openai(messages: Iterable[AnyMessage]) -> list[Any]:
    """Messages of any format as OpenAI's Chat Completions takes them.

    Pass the result as ``messages``. A message that OpenAI accepts comes back equal. A
    call without a result stays without one. Reasoning is left out, unless a compatible
    server wrote it. Images and files in the result of a tool follow in a message of the
    user, since a result is text here. Other parts that this provider does not know
    become text.
    """
    from holdfast._messages import model_input  # noqa: PLC0415 - it imports this

    return model_input.to_openai(messages)


def to_openai_responses(messages: Iterable[AnyMessage]) -> list[Any]:
    """Messages of any format as the items that OpenAI's Responses takes.

    Pass the result as ``input``. An item that OpenAI accepts comes back equal, with its
    reasoning, except reasoning that nothing follows. The reasoning of others and names
    of speakers are left out; parts that this provider does not know become text. A call
    without a result stays without one.
    """
    from holdfast._messages import model_input  # noqa: PLC0415 - it imports this

    return model_input.to_openai_responses(messages)


def to_anthropic(messages: Iterable[AnyMessage]) -> AnthropicRequest:
    """Messages of any format as arguments of Anthropic's ``messages.create``.

    Pass the result as ``**to_anthropic(...)``. All system messages become ``system``.
    Neighbouring messages of one role are joined, results of tools first; a message that
    says nothing is left out. A transcript of Anthropic that keeps these rules comes
    back equal, with its signed thinking. The reasoning of others and names of speakers
    are left out; parts that this provider does not know become text. A call without a
    result stays without one.
    """
    from holdfast._messages import model_input  # noqa: PLC0415 - it imports this

    return model_input.to_anthropic(messages)


def to_plain(messages: Iterable[AnyMessage]) -> list[Message]:
    """Messages of any format as `Message` records.

    A `Message` comes back as it is. The items of one reply become one message; each
    result of a tool becomes a message. Parts that are neither text nor media become
    text.
    """
    from holdfast._messages import model_input  # noqa: PLC0415 - it imports this

    return model_input.to_plain(messages)
