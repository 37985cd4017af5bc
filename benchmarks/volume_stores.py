"""Large stores: filled through the public API, and the same rows in a server.

A file is filled by many tasks that save at the same time. PostgreSQL would take ten
times as long for that, so its tables are filled from the file by COPY, with the columns
and checksums that its saves write; `verify` then finds nothing wrong with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import apsw
import psycopg

import holdfast
from benchmarks.contest.workload import Writer
from benchmarks.inner.stores import (
    NUMBER_BITS,
    POSTGRES_CODEC,
    SQLITE_CODEC,
    CheckpointRow,
    Row,
    ThreadRow,
    rows,
    segment_checksum,
)
from holdfast.backends import Segment

TASKS = 256
TEXTS = 1000
OWNERS, AGENTS, PROJECTS = 10_000, 20, 100
# A word that one message has, one that nearly all have, and the name of a long thread.
RARE, COMMON, LONG = "quetzalcoatlus", "the", "long"


async def fill_threads(path: str, count: int) -> None:
    """A file with so many threads: in turns a conversation, and one with metadata."""
    writer = Writer()
    texts = [writer.text(300) for _ in range(TEXTS)]
    async with await holdfast.open_async(
        path, durability="normal", busy_timeout=600
    ) as store:
        numbers = iter(range(count))

        async def work() -> None:
            for number in numbers:
                rare = f" {RARE}" if number == count // 2 else ""
                content = f"{number} {texts[number % TEXTS]}{rare}"
                await _save(store, number, {"role": "user", "content": content})

        await asyncio.gather(*(work() for _ in range(TASKS)))


async def _save(store: holdfast.AsyncStore, number: int, message: Any) -> None:
    owner, agent = f"user-{number % OWNERS}", f"agent-{number % AGENTS}"
    name = f"chat-{number:07}"
    if number % 2:
        await store.conversations.create(
            name, owner=owner, agent=agent, messages=[message]
        )
        return
    about = {"project": f"project-{number % PROJECTS}", "ticket": number}
    thread = store.thread(name, owner=owner, agent=agent, metadata=about)
    await thread.append(messages=[message])


def fill_history(path: str, checkpoints: int) -> None:
    """A file with one thread of so many checkpoints, a short message each."""
    with holdfast.open(path, durability="normal") as store:
        thread = store.thread(LONG)
        for number in range(checkpoints):
            thread.append(messages=[{"role": "user", "content": f"note {number}"}])


# --- the same rows in a server --------------------------------------------------------


def copy_rows(path: str, url: str, schema: str) -> None:
    """Everything of a file that `fill_threads` or `fill_history` made, in a schema."""
    holdfast.open(url, schema=schema).close()
    source = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    with psycopg.connect(url) as target:
        names: dict[int, str] = {}
        _copy(
            target,
            f"{schema}.thread",
            ThreadRow.__struct_fields__,
            _threads(source, names),
        )
        place = ("name", "number", "family", "deleted_at")
        columns = ", ".join(place)
        target.execute(
            f"insert into {schema}.directory ({columns})"
            f" select {columns} from {schema}.thread"
        )
        checkpoints = _checkpoints(source, names)
        _copy(
            target, f"{schema}.checkpoint", CheckpointRow.__struct_fields__, checkpoints
        )
        pieces = ("family", "number", "packing", "data", "checksum")
        _copy(target, f"{schema}.segment", pieces, _segments(source))
        last = source.execute("select max(changed), max(number) from thread").get
        target.execute(f"select setval('{schema}.seq', %s)", (last[0],))
        target.execute(f"select setval('{schema}.number', %s)", (last[1],))
    source.close()
    # As after some time of use; otherwise the first that asks has to wait for it.
    with psycopg.connect(url, autocommit=True) as target:
        for table in ("directory", "thread", "checkpoint", "segment"):
            target.execute(f"vacuum analyze {schema}.{table}")


def drop(url: str, schema: str) -> None:
    """Make room for the next."""
    with psycopg.connect(url, autocommit=True) as target:
        target.execute(f"drop schema {schema} cascade")


def _copy(
    target: psycopg.Connection[Any], table: str, columns: Iterable[str], all_: Any
) -> None:
    statement = f"copy {table} ({', '.join(columns)}) from stdin"
    with target.cursor().copy(statement) as copy:
        for row in all_:
            copy.write_row(row)


def _threads(source: apsw.Connection, names: dict[int, str]) -> Iterator[Row]:
    columns = ", ".join(ThreadRow.__struct_fields__)
    for row in source.execute(f"select {columns} from thread"):
        thread = ThreadRow(*row)
        names[thread.number] = thread.name
        yield row


def _checkpoints(source: apsw.Connection, names: dict[int, str]) -> Iterator[Row]:
    [(last,)] = rows(source, "last_checkpoint")
    for row in rows_between(source, "rescue_checkpoints", last):
        found = CheckpointRow(*row)
        yield POSTGRES_CODEC.checkpoint_row(
            SQLITE_CODEC.checkpoint((names[found.thread], *row[1:])),
            seq=found.seq,
            family=found.family,
            thread=found.thread,
            parent=found.parent,
        )


def rows_between(
    source: apsw.Connection, query: str, last: int, step: int = 1000
) -> Iterator[Row]:
    """All rows of a statement that takes a range of keys."""
    for first in range(1, last + 1, step):
        yield from rows(source, query, first=first, last=first + step - 1)


def _segments(source: apsw.Connection) -> Iterator[Row]:
    for key, packing, data in source.execute("select key, packing, data from segment"):
        segment = Segment(key & NUMBER_BITS, data, packing)
        checksum = segment_checksum(segment.number, segment)
        yield key >> 32, segment.number, packing, data, checksum
