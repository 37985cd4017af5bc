"""What earlier versions stored is read, verified and continued by this one.

The files in fixtures/format-1 were written by the version that introduced the format,
and changed with it until its release; from then on they are never written again. Those
in format-6 have files of checkpoints, in a folder of format 1.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

import holdfast

STORED = Path(__file__).parent.parent / "fixtures" / "format-1"
EXPECTED = json.loads((STORED / "expected.json").read_text())


def content(store):
    """What a caller can see of every thread."""
    found = {}
    for record in store.threads(limit=None):
        thread = store.thread(record.id)
        found[record.id] = {
            "kind": record.kind,
            "owner": record.owner,
            "state": repr(thread.load()),
            "history": [
                [c.id, c.step, c.label, list(c.tags), c.sha256.hex()]
                for c in thread.history(None)
            ],
            "journal": thread.journal(),
            "moves": [move.kind for move in thread.moves(None)],
        }
    return found


@pytest.fixture(
    params=["agents.db", "compressed.db", "dictionary.db", "history", "agents.hfa"]
)
def stored(request, tmp_path):
    """A store over a copy of what was stored, and what it must hold."""
    name = request.param
    place = tmp_path / name
    if name.endswith(".db"):
        place.write_bytes(gzip.decompress((STORED / f"{name}.gz").read_bytes()))
        url = str(place)
    elif name == "history":
        shutil.copytree(STORED / name, place)
        url = f"dir:{place}"
    else:
        url = ":memory:"
    with holdfast.open(url) as store:
        if name.endswith(".hfa"):
            store.import_archive(STORED / name)
        yield store, EXPECTED[name]


def test_everything_comes_back_as_it_was_saved(stored):
    store, expected = stored

    assert content(store) == expected


def test_nothing_in_it_counts_as_damaged(stored):
    store, _ = stored

    assert store.verify().problems == ()


def test_it_can_be_continued(stored):
    store, expected = stored
    chat = store.thread("chat")

    chat.append(messages=[{"role": "user", "content": "And now?"}])
    store.conversations.add("trip-7", holdfast.Message.user("Cancel it"))
    store.agents.restore("planner", "before-booking")

    assert chat.step == len(expected["chat"]["history"]) + 1
    assert store.conversations.load("trip-7").message_count == 1
    assert store.verify().problems == ()
    assert [match.snippet for match in store.search("lyon")] == [
        "A train to Lyon, please"
    ]


def test_a_compact_removes_the_dictionary_with_the_deleted_text_in_it(tmp_path):
    place = tmp_path / "dictionary.db"
    place.write_bytes(gzip.decompress((STORED / "dictionary.db.gz").read_bytes()))
    before = place.read_bytes().count(b"heliotrope")

    with holdfast.open(place, compress=True) as store:
        store.compact()
        found = content(store)
        problems = store.verify().problems

    assert before
    assert place.read_bytes().count(b"heliotrope") == 0
    assert found == EXPECTED["dictionary.db"]
    assert problems == ()


@pytest.mark.parametrize("name", ["agents.db", "dictionary.db"])
def test_a_file_without_its_first_page_is_salvaged(tmp_path, name):
    whole = gzip.decompress((STORED / f"{name}.gz").read_bytes())
    (tmp_path / name).write_bytes(bytes(4096) + whole[4096:])

    holdfast.salvage(tmp_path / name, str(tmp_path / "saved.db"))

    with holdfast.open(tmp_path / "saved.db") as store:
        found = {name: thread["state"] for name, thread in content(store).items()}
    assert found == {n: thread["state"] for n, thread in EXPECTED[name].items()}


@pytest.fixture(params=["file", "folder"])
def stored_files(request, tmp_path):
    """The address of a store with files, of the version before format 7."""
    source = STORED.parent / "format-6"
    if request.param == "folder":
        shutil.copytree(source / "history", tmp_path / "history")
        return f"dir:{tmp_path / 'history'}"
    packed = (source / "agents.db.gz").read_bytes()
    (tmp_path / "agents.db").write_bytes(gzip.decompress(packed))
    return str(tmp_path / "agents.db")


def test_a_store_with_files_is_brought_up_to_date_and_keeps_them(stored_files):
    for n in range(2):
        with holdfast.open(stored_files) as store:
            chat = store.thread("chat")
            chat.append(messages=[n])

            assert chat.load()["messages"] == ["hi", "with a file", *range(n + 1)]
            assert chat.read_file("report.md") == b"the report\n" * 20
            assert store.verify().problems == ()
            with pytest.raises(holdfast.Conflict):
                store.thread("gone").append(messages=[1])
