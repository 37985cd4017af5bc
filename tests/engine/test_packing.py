"""Packed stores: rivals while segments are joined, damage, and what is missing."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc
from pathlib import Path

import apsw
import pytest
import zstandard
from msgspec.structs import replace

import holdfast
from holdfast import Conflict, Corrupt, Store
from holdfast.backends import Layer, Segment
from holdfast.testing import raises
from inner.engine import PACKED_BLOCK, Opener, Packing
from inner.sqlite import page_checksums
from inner.values import checksum
from support.effort import QUICK
from support.programs import ENVIRONMENT
from support.samples import LONG
from support.stores import backend_of

STORED = Path(__file__).parent.parent / "fixtures" / "format-1" / "dictionary.db.gz"


def test_a_state_compressed_with_a_dictionary_that_is_lost_is_corrupt(path):
    Path(path).write_bytes(gzip.decompress(STORED.read_bytes()))
    connection = apsw.Connection(path, vfs=page_checksums())
    connection.execute("delete from setting where name like 'zstd dictionary%'")
    lost = connection.changes()
    connection.close()

    with holdfast.open(path) as store, raises(Corrupt) as raised:
        store.thread("chat").load()

    assert lost == 1
    assert "the compression dictionary" in str(raised.error)


@pytest.mark.skipif(QUICK, reason="starts a process: make test")
def test_without_zstd_compression_is_refused_with_what_to_install(path):
    program = (
        "import sys; sys.modules['zstandard'] = None; import holdfast\n"
        f"try: holdfast.open({path!r}, compress=True)\n"
        "except holdfast.Unsupported as error: print(error)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )

    assert "pip install 'holdfast[zstd]'" in done.stdout


class Stubborn(Layer):
    """Does not prune, however often it is asked, except for single families."""

    def __init__(self, backend, most=0):
        super().__init__(backend)
        self.most = most

    async def prune(self, plan):
        if len(plan.families) > self.most:
            raise Conflict("another writer was first", code="plan_stale")
        return await super().prune(plan)


def over(store, layer):
    packing = Packing(layer, compress=True)
    return Store(replace(store.runner.context, backend=packing))


def test_a_save_stands_although_nothing_could_be_joined_after_it(memory):
    chat = over(memory, Stubborn(backend_of(memory))).thread("chat")
    for n in range(40):
        chat.append(m=[f"{n} {LONG}"])

    assert memory.thread("chat").load()["m"] == [f"{n} {LONG}" for n in range(40)]
    assert largest_block(memory) == 1


def test_a_compact_goes_on_where_it_was_not_disturbed(memory):
    for name in "ab":
        memory.thread(name).append(m=[LONG])
        memory.thread(name).append(m=[LONG])

    over(memory, Stubborn(backend_of(memory), most=1)).compact()

    assert largest_block(memory) == 2
    assert memory.verify().problems == ()


def test_a_prune_plans_again_if_what_it_frees_was_just_joined(memory):
    chat = memory.thread("chat")
    for n in range(6):
        chat.append(m=[f"{n} {LONG}"])
    chat.save({"m": [f"5 {LONG}"]})

    class Overtaken(Layer):
        async def prune(self, plan):
            if largest_block(memory) == 1:
                memory.compact()
            return await super().prune(plan)

    over(memory, Overtaken(backend_of(memory))).prune(holdfast.Retention(last=1))

    assert chat.load() == {"m": [f"5 {LONG}"]}
    assert memory.stats().segments == 1
    assert memory.verify().problems == ()


@pytest.mark.parametrize(
    "change",
    [
        "count = count - 1",
        "packing = 3",
        "packing = 1",
        "packing = 9",
        "data = substr(data, 1, 20)",
    ],
)
def test_a_block_that_was_changed_is_corrupt(memory, change):
    store = over(memory, Layer(backend_of(memory)))
    for n in range(4):
        store.thread("chat").append(m=[f"{n} {LONG}"])
    store.compact()
    db = backend_of(memory).database.writer
    db.execute(f"update segment set {change}")
    [(key, packing, data)] = db.execute("select key, packing, data from segment")
    db.execute(
        "update segment set checksum = ?", (checksum(data, key * 256 + packing),)
    )

    with raises(Corrupt):
        over(memory, backend_of(memory)).thread("chat").load("@2")
    assert memory.verify().problems != ()


def test_a_block_that_claims_to_be_gigabytes_is_not_opened():
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 30))

    with raises(Corrupt):
        Opener({PACKED_BLOCK}, None).texts(Segment(1, bomb, PACKED_BLOCK, 2))


def test_a_segment_that_claims_more_than_its_state_is_not_opened(path):
    with holdfast.open(path, compress=True) as store:
        store.thread("chat").save({"text": LONG * 5})
    db = apsw.Connection(path, vfs=page_checksums())
    [(key,)] = db.execute("select key from segment")
    bomb = zstandard.ZstdCompressor().compress(bytes(200 << 20))
    seal = checksum(bomb, key * 256 + 1)
    db.execute("update segment set data = ?, checksum = ?", (bomb, seal))
    db.close()

    with holdfast.open(path) as store:
        tracemalloc.start()
        with raises(Corrupt):
            store.thread("chat").load()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    assert peak < 10 << 20


def largest_block(store):
    db = backend_of(store).database.writer
    return db.execute("select max(count) from segment").fetchone()[0]
