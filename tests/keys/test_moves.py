"""The log of moves of an encrypted store: nothing in it can be changed unnoticed."""

from __future__ import annotations

import contextlib
import gzip
import random
import shutil
from pathlib import Path

import pytest

import holdfast
from holdfast import Corrupt, Retention
from holdfast.backends import UNSET, Start, Write
from holdfast.testing import blocking, raises
from inner.sqlite import connect, page_checksums, row_checksum

KEY, OTHER = bytes(range(32)), bytes(32)
FIXTURES = Path(__file__).parent.parent / "fixtures" / "keys-form-1"


def moved(store, name="one"):
    """A thread whose head went to and fro; an undo takes it to its third save."""
    thread = store.thread(name, owner="ann")
    for n in range(6):
        thread.save({"n": n + 1})
    thread.label("first", "@1")
    thread.rewind("@3")
    thread.undo()
    thread.redo()
    thread.tag("kept", ref="@2")
    thread.rewind("@2")
    return thread


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file with two such threads, and an older copy that went another way."""
    path = tmp_path_factory.mktemp("moves") / "store.db"
    other = path.with_name("other.db")
    with holdfast.open(str(path), key=KEY, durability="normal") as store:
        moved(store)
        moved(store, "two")
    shutil.copy(path, other)
    for place in (path, other):
        with holdfast.open(str(place), key=KEY) as store:
            store.thread("one").rewind("@1")
            store.thread("one").undo()
    return path


@contextlib.contextmanager
def attacker(path):
    """A connection that repairs the checksums of moves in the end."""
    db = connect(str(path), read_only=False, busy_timeout=0.0, vfs=page_checksums())
    with contextlib.closing(db):
        db.create_scalar_function("row_checksum", row_checksum)
        yield db
        db.execute(
            "update move set checksum ="
            " row_checksum(seq, thread, kind, source, target, moved_at)"
        )


def moves_of(db, thread=1):
    return [n for (n,) in db.execute("select seq from move where thread = ?", [thread])]


def delete_middle(db, chance, _):
    db.execute("delete from move where seq = ?", [chance.choice(moves_of(db)[1:-1])])


def delete_first(db, _, __):
    db.execute("delete from move where seq = ?", [moves_of(db)[0]])


def rewrite(db, chance, _):
    first = "(select min(seq) from checkpoint)"
    change = chance.choice([
        f"source = {first}", f"target = {first}", "moved_at = moved_at + 1",
        "kind = 'undo' || substr(kind, instr(kind, '~'))",
        "kind = substr(kind, 1, length(kind) - 1) || '-'",
    ])  # fmt: skip
    rewinds = "kind like 'rewind~%' and thread = 1"
    db.execute(f"update move set {change} where {rewinds}")


def make_plain(db, chance, _):
    plain = "substr(kind, 1, instr(kind, '~') - 1)"
    where = chance.choice(["1", "seq = (select max(seq) from move)"])
    db.execute(f"update move set kind = {plain} where {where}")


def swap(db, chance, _):
    one, other = chance.sample(moves_of(db), 2)
    for old, new in ((one, -1), (other, one), (-1, other)):
        db.execute("update move set seq = ? where seq = ?", [new, old])


def move_to_another_thread(db, chance, _):
    db.execute(
        "update move set thread = 2 where seq = ?", [chance.choice(moves_of(db))]
    )


def copy(db, chance, _):
    thread = chance.choice([1, 2])
    db.execute(
        "insert into move select (select max(seq) from move) + 1000, 1, kind, source,"
        " target, moved_at, 0 from move where seq = ?",
        [chance.choice(moves_of(db, thread))],
    )


def insert_plain(db, chance, _):
    """What a prune and a save log has no proof; a move must not pose as one."""
    db.execute(
        "insert into move values ((select max(seq) from move) + 1000, 1, ?, (select"
        " max(seq) from checkpoint), (select min(seq) from checkpoint), 0, 0)",
        [chance.choice(["rewind", "save", "undo"])],
    )


def replay(db, _, path):
    """One that was whole in its place, where the log went another way."""
    db.execute("attach ? as other", [str(path.with_name("other.db"))])
    last = "(select max(seq) - 1 from main.move)"
    db.execute(f"delete from main.move where seq = {last}")
    db.execute(f"insert into main.move select * from other.move where seq = {last}")


TAMPERING = [
    delete_middle,
    delete_first,
    rewrite,
    make_plain,
    swap,
    move_to_another_thread,
    copy,
    insert_plain,
    replay,
]


@pytest.mark.parametrize("tamper", TAMPERING)
def test_a_log_of_moves_that_was_changed_is_noticed(tamper, whole, tmp_path):
    for seed in range(3):
        path = tmp_path / f"{seed}.db"
        shutil.copy(whole, path)
        with attacker(path) as db:
            tamper(db, random.Random(seed), whole)

        with holdfast.open(str(path), key=KEY) as store:
            assert not store.verify(quick=True).ok, f"seed {seed}"
            with contextlib.suppress(Corrupt):
                for name in ("one", "two"):
                    store.thread(name).moves(None)
                pytest.fail(f"seed {seed}: read without a word")


def test_an_undo_does_not_go_where_an_attacker_says(whole, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(whole, path)
    with attacker(path) as db:
        sixth = "(select seq from checkpoint where thread = 1 and step = 6)"
        db.execute(f"update move set source = {sixth} where seq = {moves_of(db)[-1]}")

    with holdfast.open(str(path), key=KEY) as store, raises(Corrupt):
        store.thread("one").undo()


def test_a_log_that_lost_its_end_is_noticed_by_a_seal(whole, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(whole, path)
    with holdfast.open(str(path), key=KEY) as store:
        seal = store.seal()
    with attacker(path) as db:
        db.execute("delete from move where seq = (select max(seq) from move)")

    with holdfast.open(str(path), key=KEY) as store:
        assert not store.verify(seal=seal).ok
        for name in ("later", "latest"):  # the store goes on, and the log with it
            store.thread("one").label(name)
        [problem] = store.verify(seal=seal).problems
        assert "no longer has a move that was sealed" in problem.what


def test_a_prune_gives_no_proof_to_what_was_changed_before_it(whole, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(whole, path)
    with attacker(path) as db:
        db.execute("delete from move where seq = ?", [moves_of(db)[3]])

    with holdfast.open(str(path), key=KEY) as store:
        store.prune(Retention(last=1))
        assert not store.verify(quick=True).ok


# --- whatever a store does with a log, it stays sound ---------------------------------


@pytest.mark.parametrize("url", ["{}/store.db", "dir:{}/store"])
def test_the_proofs_of_moves_survive_all_that_a_store_does(url, tmp_path):
    url, copied, saved = (url.format(tmp_path / name) for name in "abc")
    (tmp_path / "c").mkdir()
    with holdfast.open(url, key=KEY, make_folders=True) as store:
        every_way(store)
        kinds = [move.kind for move in store.thread("one").moves(None)]
        store.export_to(str(tmp_path / "archive"))
        with holdfast.open(copied, key=OTHER, make_folders=True) as other:
            store.copy_to(other)
        store.salvage(saved)

    with (
        holdfast.open(url, key=KEY) as again,
        holdfast.open(copied, key=OTHER) as copy,
        holdfast.open(saved, key=KEY) as salvaged,
        holdfast.open(":memory:", key=KEY) as imported,
    ):
        imported.import_archive(str(tmp_path / "archive"))
        for store in (again, copy, salvaged, imported):
            assert store.verify().problems == ()
            thread = store.thread("one")
            if store is not salvaged:  # it has new saves of the states
                assert [move.kind for move in thread.moves(None)] == kinds
            before = thread.load()
            thread.rewind("@2")
            thread.undo()
            assert thread.load() == before
            assert store.verify().problems == ()


def every_way(store):
    """Log moves in every way, and remove some of them in every way."""
    one = moved(store)
    fork = one.fork("fork", at="@2")
    fork.save({"n": 20})
    fork.rewind("@1")
    one.describe(metadata={"k": 1})
    one.record("key", 1)
    one.forget("key")
    store.prune(Retention(last=2))
    one.label("after", "@2")
    moved(store, "gone")
    store.delete("gone")
    store.thread("gone").save({"n": 1}, expect=None)
    store.thread("gone").label("anew")
    scoped = moved(store.scope("acme"))
    scoped.undo()
    one.rewind("@1")
    one.undo()


def test_of_many_who_add_to_a_log_none_breaks_it(path):
    with holdfast.open(path, key=KEY, durability="normal") as store:
        moved(store)
    with contextlib.ExitStack() as stack:
        stores = [
            stack.enter_context(holdfast.open(path, key=KEY, durability="normal"))
            for _ in range(2)
        ]
        with_threads(stores, lambda store, n: store.thread("one").label(f"l{n}", "@2"))
        assert stores[0].verify().problems == ()
        kinds = [move.kind for move in stores[0].thread("one").moves(None)]
    assert kinds.count("mark") == 2 + 40


def with_threads(stores, work):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(work, stores[n % 2], n) for n in range(40)]
        for future in done:
            future.result()


def test_a_fork_that_another_process_has_made_too_is_logged_behind_it(path):
    async def pin(context, head):
        start = Start(head=head, kind="pin")
        write = Write(thread="pin:1", at=1, expect=UNSET, start=start)
        await context.backend.commit([write])

    with holdfast.open(path, key=KEY) as store:
        head = store.thread("one").save({"n": 1})
        for _ in range(2):
            store.runner.run(pin, head)

        assert store.verify().problems == ()


# --- stores that were made before -----------------------------------------------------


@pytest.fixture(params=["agents.db", "history"])
def earlier(request, tmp_path):
    """A store of an earlier version, whose moves have no proofs."""
    place = tmp_path / request.param
    if request.param == "history":
        shutil.copytree(FIXTURES / "history", place)
        return f"dir:{place}"
    place.write_bytes(gzip.decompress((FIXTURES / "agents.db.gz").read_bytes()))
    return str(place)


def test_the_moves_of_an_earlier_store_get_proofs_when_it_is_opened(earlier):
    kinds = ["rewind", "mark", *["save"] * 6]
    with blocking(holdfast.open_async(earlier, key=KEY)) as store:
        assert store.verify().problems == ()
        assert [move.kind for move in store.thread("b").moves(None)] == kinds
        assert store.thread("b").undo().step == 6
        store.thread("b").label("new")

    with holdfast.open(earlier, key=KEY) as store:
        assert store.verify().problems == ()
        seal = store.seal()
        assert store.verify(seal=seal).ok


def test_an_earlier_form_that_is_put_back_does_not_take_the_proofs_away(tmp_path):
    path = tmp_path / "store.db"
    path.write_bytes(gzip.decompress((FIXTURES / "agents.db.gz").read_bytes()))
    with attacker(path) as db:
        [before] = db.execute("select value, checksum from setting where name = 'keys'")
    with holdfast.open(str(path), key=KEY) as store:
        store.thread("a").save({"n": 7})

    with attacker(path) as db:
        make_plain(db, random.Random(1), None)
        set_keys = "update setting set value = ?, checksum = ? where name = 'keys'"
        db.execute(set_keys, before)

    with raises(Corrupt) as raised:
        holdfast.open(str(path), key=KEY)
    assert "put back" in str(raised.error)
