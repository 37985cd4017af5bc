"""Of many that want to record a key once in a family, exactly one does."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import holdfast
from holdfast.backends import UNSET, Entry, FamilyEntries, Write
from holdfast.testing import blocking
from holdfast.testing.conformance.bridge import finished
from support import databases, servers

RIVALS, KEYS = 6, 12


@contextlib.contextmanager
def an_address(kind, tmp_path):
    if kind == "postgres":
        with databases.database(servers.shared(servers.NAMES[-1])) as url:
            yield url
    else:
        yield f"dir:{tmp_path}/store" if kind == "directory" else f"{tmp_path}/a.db"


async def _commit(context, write):
    [receipt] = await context.backend.commit([write])
    return receipt.entries[0].value


async def _scan(context, query):
    return await context.backend.scan(query)


def opened(door, url):
    if door == "awaited":
        return blocking(holdfast.open_async(url, durability="normal"))
    return holdfast.open(url, durability="normal")


@pytest.mark.parametrize("door", ["blocking", "awaited"])
@pytest.mark.parametrize("kind", ["sqlite", "directory", "postgres"])
def test_of_rivals_on_forks_of_one_family_one_records_a_key(kind, door, tmp_path):
    start = threading.Barrier(RIVALS)

    def consume(url, name):
        """What is in force for each key, as one rival finds it."""
        with opened(door, url) as store:
            found = []
            for n in range(KEYS):
                entry = Entry(name, "", f"grant:{n}", f'"{name}"'.encode(), 1)
                write = Write(
                    thread=name,
                    at=1,
                    expect=UNSET,
                    entries=(entry,),
                    family_wide=True,
                )
                start.wait(120)
                found.append(finished(store.runner.run(_commit, write)))
            return found

    with an_address(kind, tmp_path) as url:
        names = [f"fork {n}" for n in range(RIVALS)]
        with opened(door, url) as store:
            head = store.thread("chat").save({"n": 1})
            for name in names:
                store.thread("chat").fork(name)
        with ThreadPoolExecutor(RIVALS) as pool:
            seen = list(pool.map(lambda name: consume(url, name), names))
        with opened(door, url) as store:
            query = FamilyEntries(family=head.family, prefix="grant:")
            recorded = finished(store.runner.run(_scan, query))

    winners = {entry.key: entry.thread for entry in recorded}
    assert len(recorded) == len(winners) == KEYS
    for found in seen:
        assert found == [winners[f"grant:{n}"] for n in range(KEYS)]
