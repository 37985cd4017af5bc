"""A conversation in each store for Pydantic AI: size, time, loading, lost updates.

The framework ships a store in memory only. Beside it stands what is written by hand
instead: a table with a row for each entry.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from pydantic import TypeAdapter
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits

import holdfast
from benchmarks.contest.workload import ASSISTANT_SIZE, USER_SIZE, Writer
from benchmarks.frameworks.measured import Measured, main
from holdfast.adapters.pydantic_ai import HoldfastConversationStore

ID = "chat"
LOADS = 20
UPDATES = 100
NO_LIMITS = UsageLimits(request_limit=None)
Opened = Callable[[str], AbstractContextManager[ConversationStore]]
ENTRY = TypeAdapter(ConversationEntry)
RECORD = TypeAdapter(ConversationRecord)

SCHEMA = """
pragma journal_mode = wal;
pragma synchronous = full;
create table if not exists record (id text primary key, revision text, content text);
create table if not exists entry (id text primary key, parent text, content text);
"""
HISTORY = """
with recursive line (id, parent, content, depth) as (
    select id, parent, content, 0 from entry where id = ?
    union all
    select entry.id, entry.parent, entry.content, depth + 1
    from line join entry on entry.id = line.parent
)
select content from line order by depth desc
"""


class RowStore(ConversationStore):
    """A row for each entry and each record, each change one transaction."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(SCHEMA)

    def close(self) -> None:
        self._db.close()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        query = "select content from record where id = ?"
        found = self._db.execute(query, (conversation_id,)).fetchone()
        return RECORD.validate_json(found[0]) if found else None

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        raise NotImplementedError

    async def delete_record(
        self, conversation_id: str, *, expected_revision: str
    ) -> None:
        raise NotImplementedError

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        query = "select content from entry where id = ?"
        return ENTRY.validate_json(self._db.execute(query, (entry_id,)).fetchone()[0])

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        assert limit is None
        found = self._db.execute(HISTORY, (head_id,)).fetchall()
        return [ENTRY.validate_json(content) for [content] in found]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        content = RECORD.dump_json(record).decode()
        row = (record.conversation_id, record.revision, content)
        rows = [(e.id, e.parent_id, ENTRY.dump_json(e).decode()) for e in new_entries]
        with self._db:
            self._db.execute("begin immediate")
            query = "select revision from record where id = ?"
            found = self._db.execute(query, row[:1]).fetchone()
            if (found[0] if found else None) != expected_revision:
                raise ConversationConflict(record.conversation_id)
            self._db.executemany("insert into entry values (?, ?, ?)", rows)
            self._db.execute("insert or replace into record values (?, ?, ?)", row)


async def turn(store: ConversationStore, writer: Writer) -> None:
    """Load the conversation, let a model answer, save."""
    answer = ModelResponse(parts=[TextPart(writer.text(ASSISTANT_SIZE))])
    agent = Agent(FunctionModel(lambda *_: answer))
    before = await store.load(ID) or Conversation(conversation_id=ID)
    result = await agent.run(
        writer.text(USER_SIZE), conversation=before, usage_limits=NO_LIMITS
    )
    await store.save(result)


async def talk(measured: Measured, store: ConversationStore, turns: int) -> None:
    writer = Writer(1)
    for _ in range(turns):
        with measured.turn():
            await turn(store, writer)


async def load(measured: Measured, store: ConversationStore, turns: int) -> None:
    """Load everything, in processor time: nothing is waited for."""
    start = time.process_time()
    loaded = await store.load(ID)
    measured.loads.append(time.process_time() - start)
    assert loaded is not None
    assert len(loaded.messages) == 2 * turns


async def race(stores: Sequence[ConversationStore]) -> int:
    """How many of a hundred turns of two writers are gone although they were saved."""
    saved = 0

    async def write(store: ConversationStore) -> None:
        nonlocal saved
        writer = Writer(2)
        for _ in range(UPDATES // 2):
            with suppress(ConversationConflict):
                await turn(store, writer)
                saved += 1

    await asyncio.gather(*map(write, stores))
    final = await stores[0].load(ID)
    assert final is not None
    return saved - len(final.messages) // 2


@contextmanager
def by_rows(path: str) -> Generator[ConversationStore]:
    """The table in a file, open inside of the block."""
    store = RowStore(path)
    yield store
    store.close()


@contextmanager
def by_holdfast(path: str) -> Generator[ConversationStore]:
    """Our store in a file, open inside of the block."""
    with holdfast.open(path) as store:
        yield HoldfastConversationStore(store)


def in_file(name: str, folder: str, turns: int, opened: Opened) -> Measured:
    """The conversation in a file, which is opened anew for each load."""
    measured, path = Measured(name), os.path.join(folder, f"{name}.db")
    with opened(path) as store:
        asyncio.run(talk(measured, store, turns))
    for _ in range(LOADS):
        with opened(path) as store:
            asyncio.run(load(measured, store, turns))
    measured.size = os.path.getsize(path)
    rivals = os.path.join(folder, f"{name}-rivals.db")
    with opened(rivals) as one, opened(rivals) as other:
        measured.lost = asyncio.run(race([one, other]))
    return measured


def in_memory(turns: int) -> Measured:
    """The conversation in the framework's own store; its size is that of its JSON."""
    measured, store = Measured("InMemoryConversationStore"), InMemoryConversationStore()
    asyncio.run(talk(measured, store, turns))
    for _ in range(LOADS):
        asyncio.run(load(measured, store, turns))
    entries = asyncio.run(store.load_entries(ID)) or []
    measured.size = sum(len(ENTRY.dump_json(entry)) for entry in entries)
    rival = InMemoryConversationStore()
    measured.lost = asyncio.run(race([rival, rival]))
    return measured


def measure(folder: str, turns: int) -> tuple[Measured, list[Measured]]:
    """Holdfast, and the others."""
    ours = in_file("HoldfastConversationStore", folder, turns, by_holdfast)
    rows = in_file("a row an entry, SQLite", folder, turns, by_rows)
    return ours, [in_memory(turns), rows]


if __name__ == "__main__":
    main(measure)
