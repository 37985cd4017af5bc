"""What broke in an earlier system, smooth, each mistake by its number.

Mistakes of importers, agents, loops, encryption, damaged files and crashes are tested
elsewhere.
"""

import os

import apsw
import pytest

import holdfast
from holdfast import Conflict, FormatMismatch, NotFound, Retention, Unstorable
from holdfast.testing import raises
from support.earlier_systems import watched
from support.samples import LONG
from support.stores import backend_of


def test_2_3_ten_saves_in_one_second_resume_from_the_newest(store):
    chat = store.thread("chat")
    for n in range(10):
        chat.save({"iteration": n})

    assert chat.load() == {"iteration": 9}

    store.prune(Retention(last=3))

    assert [chat.load(c)["iteration"] for c in chat.history()] == [9, 8, 7]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/b", "..\\x", "CON", "."])
def test_2_4_hostile_ids_stay_inside_the_store(tmp_path, name):
    folder = tmp_path / "inside"
    with holdfast.open(folder / "store.db", make_folders=True) as store:
        store.thread(name).save({"n": 1}, id=name)
        assert store.thread(name).load(name) == {"n": 1}
        assert store.get(name).thread == name
        assert all(file.startswith("store.db") for file in os.listdir(folder))

    assert os.listdir(tmp_path) == ["inside"]


def test_2_6_nobody_overwrites_the_checkpoint_of_another(store):
    store.thread("one").save({"n": 1}, id="same")
    store.thread("two").save({"n": 2}, id="same")
    fork = store.thread("one").fork("fork")

    with raises(Conflict, "id_taken"):
        fork.save({"n": 3}, id="same")

    assert store.thread("one").load("same") == {"n": 1}
    assert store.thread("two").load("same") == {"n": 2}


def test_2_7_the_latest_of_many_costs_as_much_as_of_few(memory):
    few, many = memory.thread("few"), memory.thread("many")
    few.append(m=[LONG])
    for _ in range(500):
        many.save({"m": [LONG]})
    store, backend = watched(memory)
    asked = {}
    for name in ("few", "many"):
        backend.asked.clear()
        store.thread(name).load()
        asked[name] = list(backend.asked)

    assert asked["many"] == asked["few"]
    assert "scan" not in asked["many"]


def test_2_12_an_exception_in_one_call_leaves_the_store_usable(store):
    chat = store.thread("chat")

    class Broken(dict):
        def __iter__(self):
            raise RuntimeError("in the middle of a save")

    for broken in (Broken(a=1), {"a": Broken(a=1)}):
        with raises(Unstorable):
            chat.save(broken)

    assert chat.save({"n": 1}).step == 1
    assert chat.load() == {"n": 1}


def test_2_12_a_clock_that_fails_leaves_the_store_usable(path):
    failing = [False]

    def clock():
        if failing[0]:
            raise RuntimeError("no time")
        return 0

    with holdfast.open(path, clock=clock) as store:
        store.thread("chat").save({"n": 1})
        failing[0] = True
        for call in (
            lambda: store.thread("chat").save({"n": 2}),
            lambda: store.thread("chat").undo(),
            lambda: store.thread("chat").record("key", 1),
            lambda: store.prune(Retention(last=1)),
        ):
            with pytest.raises((RuntimeError, NotFound)):
                call()
        failing[0] = False

        assert store.thread("chat").save({"n": 2}).step == 2


def test_2_13_the_file_says_which_format_it_has(path):
    with holdfast.open(path) as store:
        store.thread("chat").save({})
        format_ = store.stats().format

    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    assert db.execute("pragma user_version").get == format_ >= 1
    assert db.execute("pragma application_id").get == int.from_bytes(b"HOLD", "big")
    db.close()


def test_2_13_a_newer_format_is_refused_and_left_alone(path):
    with holdfast.open(path) as store:
        store.thread("chat").save({"n": 1})
        backend = backend_of(store)
        db = apsw.Connection(path, vfs=backend.database.vfs)
        db.execute(f"pragma user_version = {store.stats().format + 1}")
        db.close()

    for read_only in (False, True):
        with raises(FormatMismatch) as refused:
            holdfast.open(path, read_only=read_only)
        assert "upgrade" in str(refused.error)


def test_2_13_a_store_in_memory_has_the_same_tables():
    with holdfast.open(":memory:") as store:
        writer = backend_of(store).database.writer

        assert writer.execute("pragma user_version").get == store.stats().format
