"""A conversation in each store for Pydantic AI: size, time, loading, lost updates.

The framework ships a store in memory; one on SQLite is in pydantic-ai-harness. That
names another version of the framework than our adapter, and works with this one, too.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits
from pydantic_ai_harness.step_persistence import conversations as harness

import holdfast
from benchmarks.contest.workload import ASSISTANT_SIZE, USER_SIZE, Writer
from benchmarks.frameworks.measured import Measured, main
from holdfast.adapters.pydantic_ai import HoldfastConversationStore

ID = "chat"
LOADS = 20
UPDATES = 100
NO_LIMITS = UsageLimits(request_limit=None)
ENTRY = TypeAdapter(ConversationEntry)


class Chat(Protocol):
    """One conversation in a store."""

    async def turn(self, writer: Writer) -> None:
        """Load the conversation, let a model answer, save."""
        ...

    async def load(self) -> int:
        """Load everything, and count the messages."""
        ...


Opened = Callable[[str], AbstractContextManager[Chat]]


def agent(writer: Writer) -> Agent:
    """An agent that answers with one text."""
    answer = ModelResponse(parts=[TextPart(writer.text(ASSISTANT_SIZE))])
    return Agent(FunctionModel(lambda *_: answer))


class StoredChat:
    """A conversation in a store with the framework's interface."""

    def __init__(self, store: ConversationStore) -> None:
        self._store = store

    async def turn(self, writer: Writer) -> None:
        answering = agent(writer)
        before = await self._store.load(ID) or Conversation(conversation_id=ID)
        prompt = writer.text(USER_SIZE)
        result = await answering.run(
            prompt, conversation=before, usage_limits=NO_LIMITS
        )
        await self._store.save(result)

    async def load(self) -> int:
        loaded = await self._store.load(ID)
        assert loaded is not None
        return len(loaded.messages)


class HarnessChat:
    """A conversation in the harness's store, which takes all messages each time."""

    def __init__(self, path: str) -> None:
        self._store = harness.SqliteConversationStore(database=Path(path))

    async def turn(self, writer: Writer) -> None:
        answering = agent(writer)
        saved = await self._saved()
        prompt = writer.text(USER_SIZE)
        result = await answering.run(
            prompt, message_history=saved.messages, usage_limits=NO_LIMITS
        )
        messages = result.all_messages()
        await self._store.save(summary=saved.summary, messages=messages)

    async def _saved(self) -> harness.SavedConversation:
        try:
            return await self._store.get(conversation_id=ID)
        except LookupError:
            summary = harness.ConversationSummary(id=ID, workspace="")
            return harness.SavedConversation(summary=summary, messages=[])

    async def load(self) -> int:
        return len((await self._saved()).messages)


async def talk(measured: Measured, chat: Chat, turns: int) -> None:
    writer = Writer(1)
    for _ in range(turns):
        with measured.turn():
            await chat.turn(writer)


async def load(measured: Measured, chat: Chat, turns: int) -> None:
    """Load everything, in processor time: nothing is waited for."""
    start = time.process_time()
    loaded = await chat.load()
    measured.loads.append(time.process_time() - start)
    assert loaded == 2 * turns


async def race(chats: Sequence[Chat]) -> int:
    """How many of a hundred turns of two writers are gone although they were saved."""
    saved = 0

    async def write(chat: Chat) -> None:
        nonlocal saved
        writer = Writer(2)
        for _ in range(UPDATES // 2):
            with suppress(ConversationConflict, harness.ConversationConflict):
                await chat.turn(writer)
                saved += 1

    await asyncio.gather(*map(write, chats))
    return saved - await chats[0].load() // 2


@contextmanager
def by_harness(path: str) -> Generator[Chat]:
    """The harness's store, which opens the file for each call."""
    yield HarnessChat(path)


@contextmanager
def by_holdfast(path: str) -> Generator[Chat]:
    """Our store in a file, open inside of the block."""
    with holdfast.open(path) as store:
        yield StoredChat(HoldfastConversationStore(store))


def in_file(name: str, folder: str, turns: int, opened: Opened) -> Measured:
    """The conversation in a file, which is opened again for each load."""
    measured, path = Measured(name), os.path.join(folder, f"{name}.db")
    with opened(path) as chat:
        asyncio.run(talk(measured, chat, turns))
    for _ in range(LOADS):
        with opened(path) as chat:
            asyncio.run(load(measured, chat, turns))
    measured.size = os.path.getsize(path)
    rivals = os.path.join(folder, f"{name}-rivals.db")
    with opened(rivals) as one, opened(rivals) as other:
        measured.lost = asyncio.run(race([one, other]))
    return measured


def in_memory(turns: int) -> Measured:
    """The conversation in the framework's own store; its size is that of its JSON."""
    measured, store = Measured("InMemoryConversationStore"), InMemoryConversationStore()
    asyncio.run(talk(measured, StoredChat(store), turns))
    for _ in range(LOADS):
        asyncio.run(load(measured, StoredChat(store), turns))
    entries = asyncio.run(store.load_entries(ID)) or []
    measured.size = sum(len(ENTRY.dump_json(entry)) for entry in entries)
    rival = StoredChat(InMemoryConversationStore())
    measured.lost = asyncio.run(race([rival, rival]))
    return measured


def measure(folder: str, turns: int) -> tuple[Measured, list[Measured]]:
    """Holdfast, and the others."""
    ours = in_file("HoldfastConversationStore", folder, turns, by_holdfast)
    theirs = in_file("SqliteConversationStore", folder, turns, by_harness)
    return ours, [in_memory(turns), theirs]


if __name__ == "__main__":
    main(measure)
