"""Manifests that `compact` packed: the same records in fewer bytes."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import apsw
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as some

import holdfast
from holdfast import Corrupt, HoldfastError, Message
from holdfast.faults import Fault, FaultyDisk, io_error
from holdfast.testing import raises
from inner.sqlite import pack_manifest, page_checksums, unpack_manifest
from support.samples import LONG

DIGEST = "x2lTeEUW4HvR+fEs0+qZ0kQXd9v3f9xbrvFqF/87ZV0="


def build(store):
    chat = store.thread("chat")
    for n in range(10):
        chat.append(messages=[{"role": "user", "content": f"{n} {LONG}"}])
    chat.label("third", ref="@3")
    chat.tag("a", ref="@3")
    chat.fork("other", "@3").save({"messages": [LONG], "title": "é\u2028", "n": 7})
    store.thread("single").save([LONG, LONG])
    store.thread("tiny").save({"x": DIGEST})
    store.conversations.create("talk", messages=[Message.user("hello")] * 3)


def content(store):
    return {
        record.id: (
            record.head,
            store.thread(record.id).load(),
            [*history(store, record)],
        )
        for record in store.threads(limit=None)
    }


def history(store, record):
    for checkpoint in store.thread(record.id).history(None):
        yield checkpoint, store.thread(record.id).load(checkpoint.id)


@pytest.fixture
def packed(path):
    """A file whose manifests are packed, and what was in it before."""
    with holdfast.open(path, compress=True) as store:
        build(store)
        before = content(store), store.stats().messages
        store.compact()
    return path, before


def manifests(path):
    db = apsw.Connection(path, vfs=page_checksums())
    found = [manifest for (manifest,) in db.execute("select manifest from checkpoint")]
    db.close()
    return found


def test_a_compact_of_a_compressed_store_changes_no_record(packed):
    path, before = packed

    with holdfast.open(path) as store:
        after = content(store), store.stats().messages
        problems = store.verify().problems

    assert after == before
    assert problems == ()
    assert all(manifest[0] >= 0x80 for manifest in manifests(path))


def test_the_manifest_of_a_chat_takes_the_digest_and_a_few_bytes(packed):
    path, _ = packed

    assert min(map(len, manifests(path))) < 32 + 8


def test_a_plain_store_keeps_manifests_that_a_person_can_read(path):
    with holdfast.open(path) as store:
        build(store)
        store.compact()

    assert all(orjson.loads(manifest) for manifest in manifests(path))


def test_packed_checkpoints_are_marked_pruned_and_continued(packed):
    path, _ = packed

    with holdfast.open(path, compress=True) as store:
        chat = store.thread("chat")
        chat.label("fifth", ref="@5")
        chat.append(messages=["more"])
        store.prune(holdfast.Retention(last=2))
        labels = [c.label for c in chat.history(None)]
        store.compact()
        problems = store.verify().problems
        loaded = chat.load()["messages"]

    assert "fifth" in labels
    assert len(loaded) == 11
    assert problems == ()


def test_packed_checkpoints_go_to_other_stores_as_they_were(packed, tmp_path):
    path, before = packed

    with (
        holdfast.open(path) as store,
        holdfast.open(f"dir:{tmp_path / 'folder'}") as folder,
    ):
        store.copy_to(folder)
        copied = {
            name: (c.sha256, c.manifest) for name, (c, *_) in content(folder).items()
        }

    assert copied == {
        name: (c.sha256, c.manifest) for name, (c, *_) in before[0].items()
    }


@pytest.mark.parametrize(
    "change",
    ["x'81' || substr(manifest, 3)", "x'ff'", "x'80fe'", "substr(manifest, 1, 20)"],
)
def test_a_packed_manifest_that_was_changed_is_corrupt(packed, change):
    path, _ = packed
    db = apsw.Connection(path, vfs=page_checksums())
    db.execute(f"update checkpoint set manifest = cast({change} as blob)")
    db.close()

    with holdfast.open(path) as store:
        with raises(Corrupt):
            store.thread("chat").load()
        assert store.verify().problems


texts = some.text() | some.sampled_from([DIGEST, "messages", "list", '],"', "é"])
entries = some.lists(texts | some.integers(0, 1 << 40), max_size=6)
bodies = some.dictionaries(texts, entries, max_size=40)
runs_of_rows = some.lists(some.tuples(some.integers(1, 9999), some.integers(1, 9999)))


@given(bodies, runs_of_rows, some.integers(0, 1 << 40), some.binary(max_size=80))
def test_what_is_packed_leads_back_to_the_same_bytes(body, runs, size, foreign):
    runs_text = orjson.dumps(runs).decode()
    for shape in ("mapping", "single"):
        manifest = orjson.dumps({shape: body, "block": 1})
        found = pack_manifest(manifest, runs_text, size)
        if found != manifest:
            assert len(found) < len(manifest)
            assert unpack_manifest(found, runs_text, size) == manifest
    found = pack_manifest(b"{" + foreign, runs_text, size)
    assert found == b"{" + foreign or (
        unpack_manifest(found, runs_text, size) == b"{" + foreign
    )


def test_damaged_columns_do_not_keep_a_manifest_from_being_compared():
    for runs in ("", "[]", "[[1,", "x" * 50, "9" * 5000, "[[1,²]]"):
        unpack_manifest(b"\x81" + bytes(32) + b"\xf6\xfb\xfe\xfd", runs, -1)


def test_the_numbers_of_packed_heads_are_counted(packed):
    path, (_, messages) = packed

    with holdfast.open(path) as store:
        assert store.stats().messages == messages == 3


def test_a_compact_that_fails_at_a_write_left_everything_as_it_was(path, tmp_path):
    disk = FaultyDisk("packing", syncing=False)
    with holdfast.open(path, compress=True) as store:
        build(store)
        before = content(store)
    whole = Path(path).read_bytes()
    failed = 0
    for at in count(1, 3):
        copy = tmp_path / f"{at}.db"
        copy.write_bytes(whole)
        with disk.open(str(copy), compress=True) as store:
            disk.arm(Fault(at=at, effect=io_error))
            try:
                store.compact()
            except HoldfastError:
                failed += 1
            calls = disk.heal()
        with holdfast.open(copy, cache_size=0) as store:
            assert content(store) == before
            assert store.verify().problems == ()
        if calls < at:
            break
    disk.remove()

    assert failed > 10


def test_packed_checkpoints_are_salvaged_without_the_first_page(packed, tmp_path):
    path, before = packed
    file = Path(path)
    file.write_bytes(bytes(2048) + file.read_bytes()[2048:])

    holdfast.salvage(path, str(tmp_path / "saved.db"))

    with holdfast.open(tmp_path / "saved.db") as store:
        found = {name: state for name, (_, state, _) in content(store).items()}
    assert found == {name: state for name, (_, state, _) in before[0].items()}
