"""Whatever is changed in the rows of an encrypted store is noticed.

The checksums of rows are repaired after each change, as an attacker would do it.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil

import pytest

import holdfast
from holdfast import Corrupt
from holdfast.backends import Segment
from holdfast.testing import blocking, raises
from inner.keys import SEGMENT_NUMBERS
from inner.sql import CheckpointRow, EntryRow
from inner.sqlite import CODEC, connect, page_checksums
from inner.values import checksum
from support.effort import THOROUGH, seed_of
from support.samples import LONG

KEY = bytes(range(32))
ROUNDS = 100 if THOROUGH else 5


class Rows:
    """The rows of a store, changed past Holdfast."""

    def __init__(self, path, chance):
        self.db = connect(
            str(path), read_only=False, busy_timeout=0.0, vfs=page_checksums()
        )
        self.chance = chance

    def run(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def pick(self, table, count=1, where="1"):
        key = {"segment": "key", "thread": "number"}.get(table, "seq")
        found = self.run(f"select {key} from {table} where {where} order by 1")
        return [number for (number,) in self.chance.sample(found, count)]

    def column(self, table, column, number):
        key = {"segment": "key", "thread": "number"}.get(table, "seq")
        [(value,)] = self.run(f"select {column} from {table} where {key} = ?", number)
        return value

    def put(self, table, column, number, value):
        key = {"segment": "key", "thread": "number"}.get(table, "seq")
        self.run(f"update {table} set {column} = ? where {key} = ?", value, number)

    def swap(self, table, column, a, b):
        mine, other = (self.column(table, column, n) for n in (a, b))
        assert mine != other
        self.put(table, column, a, other)
        self.put(table, column, b, mine)

    def repair(self):
        """Make the checksums of all rows fit, as they do after a save."""
        for key, packing, data in self.run("select key, packing, data from segment"):
            self.put("segment", "checksum", key, checksum(data, key * 256 + packing))
        columns = ", ".join(CheckpointRow.__struct_fields__)
        for row in self.run(f"select {columns} from checkpoint_full"):
            seq = CheckpointRow(*row).seq
            self.put("checkpoint", "checksum", seq, CODEC._checksum(row))
        columns = ", ".join(EntryRow.__struct_fields__)
        for row in self.run(f"select {columns} from journal"):
            seq = EntryRow(*row).seq
            self.put("journal", "checksum", seq, CODEC._entry_checksum(row))


def flipped(data, chance):
    place = chance.randrange(len(data) * 8)
    changed = bytearray(data)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


PLACES = [
    ("segment", "data"),
    ("checkpoint", "manifest"),
    ("journal", "value"),
    ("thread", "metadata"),
]


def edit(rows):
    table, column = rows.chance.choice(PLACES)
    [number] = rows.pick(table)
    data = rows.column(table, column, number)
    rows.put(table, column, number, flipped(data, rows.chance))


def swap_threads(rows):
    """What belongs to one thread is put into another of the same owner."""
    what = rows.chance.choice(["manifest", "segment", "journal", "metadata", "head"])
    a, b = (
        rows.run("select number, head from thread where owner is not null")[n]
        for n in (0, 1)
    )
    if what == "manifest":
        rows.swap("checkpoint", "manifest", a[1], b[1])
    elif what == "segment":
        first = "select min(key) from segment where key >> 32 = ?"
        keys = [rows.run(first, number)[0][0] for number, _ in (a, b)]
        rows.swap("segment", "data", *keys)
    elif what == "metadata":
        rows.swap("thread", "metadata", a[0], b[0])
    elif what == "head":
        rows.put("thread", "head", a[0], b[1])
    else:
        rows.run("delete from journal where thread = ?", a[0])
        rows.run("update journal set thread = ? where thread = ?", a[0], b[0])


def swap_versions(rows):
    table, column = rows.chance.choice(PLACES[:2])
    first = "key < 2 << 32" if table == "segment" else "family = 1"
    rows.swap(table, column, *rows.pick(table, 2, first))


def change_column(rows):
    """What stands in the clear is bound to what is encrypted."""
    changes = [
        ("checkpoint", "step", "step + 1"),
        ("checkpoint", "saved_at", "saved_at - 1"),
        ("checkpoint", "kind", "'save '"),
        ("checkpoint", "size", "size + 1"),
        ("checkpoint", "id", "id || 'x'"),
        ("thread", "owner", "(select agent from thread where agent is not null)"),
        ("thread", "owner", "null"),
        ("thread", "kind", "'pin'"),
        ("thread", "agent", "null"),
        ("thread", "name", "'plain'"),
        ("journal", "checkpoint", "'x'"),
        ("segment", "count", "count + 1"),
        ("segment", "packing", "3 - packing"),
    ]
    table, column, value = rows.chance.choice(changes)
    where = f"{column} is not null" if table == "thread" else "1"
    [number] = rows.pick(table, where=where)
    key = {"segment": "key", "thread": "number"}.get(table, "seq")
    rows.run(f"update {table} set {column} = {value} where {key} = ?", number)


def replay(rows):
    """A segment is replaced by an older one, which was whole in its own place."""
    old, new = sorted(rows.pick("segment", 2, "key < 2 << 32"))
    rows.put("segment", "data", new, rows.column("segment", "data", old))


def delete_middle(rows):
    """A checkpoint goes, and its child is given to its parent."""
    [middle] = rows.pick(
        "checkpoint",
        where="parent is not null and family = 1"
        " and seq in (select parent from checkpoint)",
    )
    parent = rows.column("checkpoint", "parent", middle)
    rows.run("update checkpoint set parent = ? where parent = ?", parent, middle)
    rows.run("delete from checkpoint where seq = ?", middle)


def reorder(rows):
    """The segments of a value change places in the list of its checkpoint."""
    [number] = rows.pick("checkpoint", where="step > 1 and family < 3")
    [[first, last]] = json.loads(rows.column("checkpoint", "runs", number))
    runs = [[last, last], *([n, n] for n in range(first, last))]
    rows.put("checkpoint", "runs", number, json.dumps(runs, separators=(",", ":")))


def make_plain(rows):
    table, column = rows.chance.choice(PLACES)
    [number] = rows.pick(table)
    rows.put(table, column, number, b'{"forged":true}')


def strip_tag(rows):
    table, column = rows.chance.choice(PLACES)
    [number] = rows.pick(table)
    data = rows.column(table, column, number)
    rows.put(table, column, number, data[: -rows.chance.randint(1, 16)])


def forge(rows):
    """A content that is whole, under a key of the attacker's own."""
    table, column = rows.chance.choice(PLACES)
    [number] = rows.pick(table)
    data = rows.column(table, column, number)
    rows.put(table, column, number, data[:10] + rows.chance.randbytes(len(data) - 10))


TAMPERING = [
    edit,
    swap_threads,
    swap_versions,
    change_column,
    replay,
    delete_middle,
    reorder,
    make_plain,
    strip_tag,
    forge,
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store with two threads of an owner, and one without an owner."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    with holdfast.open(str(path), key=KEY, durability="normal") as store:
        for name in ("one", "two"):
            thread = store.thread(
                name, owner="ann", agent="helper", metadata={"k": name}
            )
            for n in range(6):
                thread.append(messages=[f"{name} {n} " + "x" * 600])
            thread.record("key", {"n": name})
        store.thread("three").save({"n": 3})
    return path


def problem_of(path):
    """What is noticed by verifying, or by reading every thread."""
    try:
        with holdfast.open(str(path), key=KEY, cache_size=0) as store:
            problems = [str(problem) for problem in store.verify().problems]
            for record in store.threads():
                store.thread(record.id).load()
                store.thread(record.id).journal()
    except Corrupt as error:
        return [str(error)]
    return problems


@pytest.mark.parametrize("tamper", TAMPERING)
def test_tampering_is_noticed(tamper, whole, tmp_path):
    for round_ in range(ROUNDS):
        seed = seed_of(tamper.__name__, round_)
        path = tmp_path / f"{round_}.db"
        shutil.copy(whole, path)
        rows = Rows(path, random.Random(seed))
        with contextlib.closing(rows.db):
            tamper(rows)
            rows.repair()

        assert problem_of(path) != [], f"seed {seed}"

    path = tmp_path / "repaired.db"
    shutil.copy(whole, path)
    rows = Rows(path, None)
    with contextlib.closing(rows.db):
        rows.repair()
    assert problem_of(path) == []


def test_verify_finds_a_head_that_belongs_to_another_thread(whole, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(whole, path)
    rows = Rows(path, None)
    with contextlib.closing(rows.db):
        rows.run("update thread set head = (select max(head) from thread)")
        sums = "(changed * 41 + head * 37)"
        guard = f"({sums} | updated_at) - ({sums} & updated_at)"
        rows.run(f"update thread set guard = {guard}")

    with holdfast.open(str(path), key=KEY) as store:
        problems = [problem.what for problem in store.verify(quick=True).problems]

    assert len(problems) == 2
    assert "its head belongs to another thread" in problems[0]


# --- what only a seal tells -----------------------------------------------------------


def sealed(path, change):
    """The problems after a change, by the seal from before it."""
    with holdfast.open(str(path), key=KEY) as store:
        seal = store.seal()
    change()
    with holdfast.open(str(path), key=KEY) as store:
        return [str(problem) for problem in store.verify(seal=seal).problems]


def test_a_thread_that_only_has_a_journal_is_sealed_too(whole, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(whole, path)
    with holdfast.open(str(path), key=KEY) as store:
        store.thread("called").record("call", {"refunded": 129})

    assert sealed(path, lambda: None) == []


def test_a_file_that_was_put_back_is_recognised(whole, tmp_path):
    path, older = tmp_path / "store.db", tmp_path / "older.db"
    shutil.copy(whole, path)
    shutil.copy(whole, older)
    with holdfast.open(str(path), key=KEY) as store:
        store.thread("one").append(messages=["new"])

    problems = sealed(path, lambda: shutil.copy(older, path))

    assert ["'one'" in problem and "put back" in problem for problem in problems] == [
        True
    ]


MOVED_BACK = {
    "head": "update thread set head = (select min(seq) from checkpoint) where number=1",
    "journal": "delete from journal where thread = 1",
    "label": "update checkpoint set label = null",
    "label elsewhere": "update checkpoint set label = (select max(label) from"
    " checkpoint) where family = 1",
    "thread": "delete from thread where number = 3",
    "older": "update thread set changed = changed - 1 where number = 1",
}


@pytest.mark.parametrize("what", MOVED_BACK)
def test_what_a_seal_covers_cannot_be_moved_back_or_removed(what, whole, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(whole, path)
    with holdfast.open(str(path), key=KEY) as store:
        store.thread("two").label("first", "@1")

    def change():
        rows = Rows(path, None)
        with contextlib.closing(rows.db):
            rows.run(MOVED_BACK[what])
            rows.repair()

    assert sealed(path, change) != []


def test_a_seal_stays_valid_while_others_go_on(store):
    store.thread("one").append(messages=["first"])
    store.thread("two").save({"n": 2})
    seal = store.seal()

    store.thread("one").append(messages=["second"])
    store.thread("one").rewind("@1")
    store.thread("one").record("key", 1)
    store.thread("three").save({"n": 3})

    assert store.verify(seal=seal).ok
    store.delete("two")
    assert [p.what for p in store.verify(seal=seal).problems] == [
        "family 2 was sealed and is gone"
    ]


@pytest.mark.parametrize("url", ["{}/store.db", "dir:{}/store"])
def test_a_store_that_was_put_back_is_not_opened_with_its_seal(url, tmp_path):
    url, older = url.format(tmp_path / "now"), tmp_path / "older"
    with holdfast.open(url, key=KEY, make_folders=True) as store:
        store.thread("one").save({"n": 1})
    shutil.copytree(tmp_path / "now", older)
    with holdfast.open(url, key=KEY) as store:
        store.thread("one").save({"n": 2})
        seal = store.seal()
    holdfast.open(url, key=KEY, seal=seal).close()

    shutil.rmtree(tmp_path / "now")
    shutil.move(older, tmp_path / "now")

    with raises(Corrupt):
        holdfast.open(url, key=KEY, seal=seal)
    with raises(Corrupt):
        blocking(holdfast.open_async(url, key=KEY, seal=seal))


def test_another_text_is_no_seal(whole, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(whole, path)
    with holdfast.open(str(path), key=KEY) as store:
        seal = store.seal()
        with holdfast.open(":memory:", key=KEY) as other:
            for text in ("x", seal[:-9], other.seal()):
                with raises(holdfast.Unstorable):
                    store.verify(seal=text)


def test_all_that_a_segment_says_is_bound_to_it():
    assert {"data", *SEGMENT_NUMBERS} == set(Segment.__struct_fields__)


@pytest.fixture
def grown(path):
    """Two threads whose messages were joined into blocks while they grew."""
    with holdfast.open(path, key=KEY) as store:
        for name in ("one", "two"):
            for n in range(200):
                store.thread(name).append(messages=[f"{name} {n} {LONG}"])
    return path


def test_lists_that_grow_are_joined_so_that_a_load_decrypts_less(grown):
    rows = Rows(grown, None)
    with contextlib.closing(rows.db):
        [(stored, held)] = rows.run("select count(*), sum(count) from segment")

    with holdfast.open(grown, key=KEY) as store:
        loaded = store.thread("two").load()["messages"]
        problems = store.verify().problems

    assert loaded == [f"two {n} {LONG}" for n in range(200)]
    assert problems == ()
    assert held == 400
    assert stored < held / 3


@pytest.mark.parametrize(
    "change",
    [
        "swap the blocks of two threads",
        "swap two blocks of a thread",
        "cut a block",
        "flip a bit",
    ],
)
def test_a_block_that_was_changed_or_moved_is_noticed(grown, change):
    rows = Rows(grown, random.Random(seed_of(change)))
    with contextlib.closing(rows.db):
        first, second = rows.pick("segment", 2, "count > 1 and key >> 32 = 1")
        other = first & 0xFFFF_FFFF | 2 << 32
        data = rows.column("segment", "data", first)
        if change == "swap the blocks of two threads":
            rows.swap("segment", "data", first, other)
        elif change == "swap two blocks of a thread":
            rows.swap("segment", "data", first, second)
        elif change == "cut a block":
            rows.put("segment", "data", first, data[:-1])
        else:
            rows.put("segment", "data", first, flipped(data, rows.chance))
        rows.repair()

    with holdfast.open(grown, key=KEY) as store:
        with raises(Corrupt):
            store.thread("one").load()
        assert not store.verify().ok
