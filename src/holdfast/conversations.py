"""Conversations as typed records: messages, and fields about them.

A session is a conversation with an owner. The records are plain values;
``store.conversations`` saves and loads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast import messages
from holdfast._messages import transcript
from holdfast._messages.fields import from_values, to_values
from holdfast._messages.repair import Repair
from holdfast._messages.tally import Tally
from holdfast._messages.tally import counts_of as counts_of  # noqa: PLC0414 - offered here
from holdfast._messages.tally import tally_of as tally_of  # noqa: PLC0414 - offered here
from holdfast._values.shortening import shortened
from holdfast.errors import Unstorable
from holdfast.messages import (
    AnthropicRequest,
    AnyMessage,
    Message,
    accepted,
    restored,
    stored,
)

LONGEST_TITLE = 50

# Fields that belong to the thread and are not stored in its state.
ABOUT_THREAD = ("id", "agent", "owner", "updated_at", "checkpoint", "repairs")

Counter = Callable[[Any], int]


class Conversation(msgspec.Struct, kw_only=True):
    """A conversation of a user with an agent.

    ``owner`` is the user, ``agent`` the agent the user talks to, ``context`` what is
    active, such as a persona or a task, ``budget`` how many tokens a context window may
    have. ``run`` is what a recorder needs to resume. ``checkpoint`` is the one it was
    loaded from or saved as: saving it again raises `Conflict` if there is a newer one.
    """

    id: str = ""
    agent: str | None = None
    owner: str | None = None
    title: str | None = None
    messages: list[AnyMessage] = msgspec.field(default_factory=list[AnyMessage])
    summary: str | None = None
    context: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    tags: list[str] = msgspec.field(default_factory=list[str])
    archived: bool = False
    budget: int | None = None
    run: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    created_at: int = 0
    updated_at: int = 0
    checkpoint: str | None = None
    repairs: tuple[Repair, ...] = ()
    extra: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @property
    def message_count(self) -> int:
        """The number of messages."""
        return len(self.messages)

    @property
    def exchange_count(self) -> int:
        """The number of user messages that have a reply."""
        return tally(map(stored, self.messages)).exchanges

    @property
    def is_empty(self) -> bool:
        """True if there is no message of the user yet."""
        return not any(transcript.role_of(stored(m)) == "user" for m in self.messages)

    def add(self, *messages: AnyMessage) -> None:
        """Append messages; an unknown role is refused."""
        for message in messages:
            accepted(message)
        self.messages += messages

    def auto_title(self) -> str | None:
        """Take the title from the first user message, unless there is one."""
        self.title = self.title or title_of(map(stored, self.messages))
        return self.title

    def context_window(
        self, budget: int | None = None, *, count: Counter | None = None
    ) -> list[AnyMessage]:
        """The system messages and the newest others that fit into so many tokens.

        A tool call and its results are taken together or not at all. ``count`` gives
        the tokens of a message, by default an estimate; the default of ``budget`` is
        that of the conversation.
        """
        chosen = self.budget if budget is None else budget
        if chosen is None:
            raise Unstorable("budget", "is missing; pass one, or set it")
        kept = [stored(message) for message in self.messages]
        by_place = dict(zip(map(id, kept), self.messages, strict=True))

        def tokens(message: Any) -> int:
            return (
                count(by_place[id(message)]) if count else transcript.tokens_of(message)
            )

        return [by_place[id(m)] for m in transcript.window(kept, chosen, tokens)]

    def to_openai(self) -> list[Any]:
        """The messages for OpenAI's Chat Completions; see `messages.to_openai`."""
        return messages.to_openai(self.messages)

    def to_openai_responses(self) -> list[Any]:
        """The items for OpenAI's Responses; see `messages.to_openai_responses`."""
        return messages.to_openai_responses(self.messages)

    def to_anthropic(self) -> AnthropicRequest:
        """The arguments for Anthropic's Messages; see `messages.to_anthropic`."""
        return messages.to_anthropic(self.messages)

    def to_plain(self) -> list[Message]:
        """The messages as `Message` records; see `messages.to_plain`."""
        return messages.to_plain(self.messages)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as listings show it, without its messages.

    ``messages`` is how many there are, ``user_messages`` how many of them the user's:
    at least so many, if another version of Holdfast counted them.
    """

    id: str
    agent: str | None
    owner: str | None
    title: str | None
    tags: tuple[str, ...]
    archived: bool
    context: dict[str, Any]
    messages: int
    user_messages: int
    exchanges: int
    open_calls: tuple[str, ...]
    created_at: int
    updated_at: int


SUMMARIZED = ("title", "tags", "archived", "context", "counts", "created_at")


def to_state(conversation: Conversation) -> dict[str, Any]:
    """The fields of a conversation in the state of its thread, without its messages."""
    state = to_values(conversation, without=(*ABOUT_THREAD, "messages"))
    derived = DERIVED & state.keys()
    if derived:
        raise Unstorable("extra", f"has {min(derived)!r}, which follows from messages")
    return state


def from_state(
    state: dict[str, Any], kept: Iterable[dict[str, Any]], **about: Any
) -> Conversation:
    """The inverse of `to_state`; ``kept`` are the messages."""
    plain = {name: value for name, value in state.items() if name not in DERIVED}
    return from_values(
        Conversation, plain, messages=[restored(message) for message in kept], **about
    )


# Values of the state that follow from the messages.
DERIVED = frozenset({"messages", "counts", "contents", "content_ids"})


def tally(messages: Iterable[object]) -> Tally:
    """The counts of a whole transcript."""
    return Tally().after(messages)


# --- titles ---------------------------------------------------------------------------


def title_of(messages: Iterable[object]) -> str | None:
    """A title from the first user message that has text."""
    for message in messages:
        text = " ".join(transcript.text_of(message).split())
        if text and transcript.role_of(message) == "user":
            return shortened(text, LONGEST_TITLE)
    return None
