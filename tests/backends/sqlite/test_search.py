"""Searching on SQLite: the index is used, kept, and never more than an optimisation."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

import holdfast
from conformance.search import (
    IndexingTests,
    SearchedTextTests,
    SearchScopeTests,
    SnippetTests,
)
from holdfast import Busy, Retention, Store
from holdfast.agents import Agent
from holdfast.backends import IndexBatch, Indexed, Indexing, Layer, SegmentsKey, run
from holdfast.testing.conformance.search import (
    SearchOrderTests,
    SearchTests,
    SearchUpkeepTests,
    places,
    user,
)
from holdfast.testing.faults import CHANGES, Fault, FaultyDisk, disk_full
from inner.engine import FORM, STRETCH, index
from inner.sqlite import candidates, search_index
from inner.values import PIN
from support.programs import run_program
from support.stores import backend_of

PADDING = "the quick brown fox jumps over the lazy dog " * 20
COUNT = 12


def fill(store, count=COUNT, **about):
    """Conversations of ten messages, the fourth of each with its number in it."""
    for number in range(count):
        texts = [f"{PADDING} {n}" for n in range(10)]
        texts[3] += f" needle{number}."
        messages = [user(text) for text in texts]
        store.conversations.create(f"{number}", messages=messages, **about)


def writer(store):
    return backend_of(store).database.writer


def stretches(store):
    """The rows of the index, by conversation."""
    found = writer(store).execute(
        "select t.name, s.number, s.first, s.last from search_stretch s"
        " join thread t on t.number = s.thread order by t.name, s.first"
    )
    return [tuple(row) for row in found]


def index_of(store):
    """What the index has of the threads, and up to which change it is complete."""
    threads = writer(store).execute("select * from search_thread").fetchall()
    return stretches(store), threads, position(store)


def position(store):
    [(found,)] = writer(store).execute("select position from search_state").fetchall()
    return found


def tables(store):
    sql = "select name from sqlite_schema where name like 'search%'"
    return [name for (name,) in writer(store).execute(sql)]


class Statements:
    """What a store in memory is asked, which has only one connection."""

    def __init__(self, store):
        self.seen = []
        writer(store).trace_v2(
            apsw.SQLITE_TRACE_STMT, lambda trace: self.seen.append(trace["sql"])
        )

    def about(self, table):
        return [sql for sql in self.seen if re.search(rf"\b{table}", sql)]


class StateReads(Layer):
    """How many states are read, and how often several at once."""

    def __init__(self, backend):
        super().__init__(backend)
        self.calls = self.count = 0

    async def read(self, keys):
        self.calls += 1
        self.count += sum(isinstance(key, SegmentsKey) for key in keys)
        return await self.backend.read(keys)


def watched(store):
    """The store, and how many states it reads."""
    reads = StateReads(backend_of(store))
    return Store(replace(store.runner.context, backend=reads)), reads


# --- the index is used ----------------------------------------------------------------


def test_only_the_conversation_that_holds_a_rare_word_is_read(memory):
    fill(memory)
    memory.search("needle")
    store, reads = watched(memory)

    found = store.search("Needle7.")

    assert places(found) == [("7", 3)]
    assert reads.count == 1


def test_only_the_conversation_that_holds_all_words_is_read(memory):
    fill(memory)
    both = user(f"the common word and the rare one {PADDING}")
    memory.conversations.create("both", messages=[both])
    memory.conversations.create("rare", messages=[user(f"a rare text {PADDING}")])
    memory.search("needle")
    store, reads = watched(memory)

    found = store.search("rare common an")

    assert places(found) == [("both", 0)]
    assert reads.count == 1


def test_the_conversations_of_a_page_are_read_at_once(memory):
    fill(memory)
    memory.search("needle")
    store, reads = watched(memory)

    assert len(store.search("needle", limit=5)) == 5
    assert (reads.calls, reads.count) == (1, 5)


def test_without_an_index_every_conversation_is_read(memory):
    fill(memory)
    store, reads = watched(memory)

    store.search("7.")

    assert reads.count == COUNT
    assert tables(memory) == []


def test_a_store_that_is_never_searched_has_no_index(memory):
    fill(memory)
    memory.compact()

    assert tables(memory) == []


def test_a_save_does_nothing_for_the_index(memory):
    fill(memory)
    memory.search("needle")
    statements = Statements(memory)

    memory.conversations.add("3", user("more"))
    memory.conversations.thread("3").undo()
    memory.conversations.thread("3").fork("conversation:fork")
    memory.conversations.delete("4")

    assert statements.seen
    assert statements.about("search_") == []


def test_nothing_is_written_while_nothing_has_changed(memory):
    fill(memory)
    memory.search("needle")
    before = writer(memory).total_changes()

    memory.search("needle3")
    memory.search("nowhere")

    assert writer(memory).total_changes() == before


def test_a_search_for_one_owner_indexes_what_the_others_have_too(memory):
    """Otherwise the index would not be complete up to any change."""
    memory.conversations.create("a", owner="me", messages=[user("text")])
    memory.conversations.create("b", owner="you", messages=[user("text")])
    memory.thread("c", kind="chat").save({"messages": [user("text")]})

    memory.conversations.search("text", owner="me")

    assert [name for name, *_ in stretches(memory)] == [
        "c", "conversation:a", "conversation:b",
    ]  # fmt: skip


def test_pins_are_not_indexed(memory):
    memory.agents.save(Agent(id="a"))
    memory.conversations.create("c", agent="a", messages=[user("needle")])
    memory.agents.checkpoint("a")

    memory.search("needle")

    assert [name for name, *_ in stretches(memory)] == ["conversation:c"]


def test_a_search_asks_only_about_threads_that_changed_since_the_last(memory):
    fill(memory)
    memory.search("needle")
    statements = Statements(memory)

    memory.search("nowhere")
    assert statements.about("stale") == []

    memory.conversations.add("3", user("more"))
    before = position(memory)
    memory.search("nowhere")
    assert position(memory) == before + 1


def test_a_frequent_word_is_looked_for_in_the_threads_used_last(memory, monkeypatch):
    monkeypatch.setattr(candidates, "READ", 1)
    monkeypatch.setattr(candidates, "READ_FILTERED", 1)
    monkeypatch.setattr(candidates, "FEW", 10)
    fill(memory, 20)
    memory.search("needle")
    statements = Statements(memory)

    found = memory.search("fox", limit=12)

    newest = [("19", n) for n in range(9, -1, -1)]
    assert places(found) == [*newest, ("18", 9), ("18", 8)]
    assert statements.about("with found") == []


NEVER = 1 << 62


@pytest.mark.parametrize(
    ("looked_up", "read", "about"),
    [
        pytest.param(NEVER, NEVER, "with found", id="sorted"),
        pytest.param(0, NEVER, "with matched", id="looked up"),
        pytest.param(0, 0, "recent desc, changed", id="read"),
    ],
)
def test_every_way_finds_the_same(memory, monkeypatch, looked_up, read, about):
    """Threads of more than 1,024 changes, some indexed twice, some not as they are."""
    monkeypatch.setattr(candidates, "FEW", 10)
    monkeypatch.setattr(candidates, "LOOKED_UP", looked_up)
    monkeypatch.setattr(candidates, "READ", read)
    for n in range(560):
        texts = [user("fox")] if n % 7 == 0 else [user("hen")]
        memory.conversations.create(f"{n}", messages=texts)
    memory.search("needle")
    for n in range(560):
        memory.conversations.add(f"{n}", user("fox" if n % 50 == 3 else "hare"))
    memory.conversations.delete("7")
    memory.search("needle")
    writer(memory).execute("delete from search_thread where thread % 90 = 1")
    statements = Statements(memory)

    found = [memory.search("fox", limit=30)]
    while found[-1].cursor is not None:
        found.append(memory.search("fox", limit=30, after=found[-1].cursor))

    wanted = [
        (f"{n}", position)
        for n in range(559, -1, -1)
        for position, is_there in ((1, n % 50 == 3), (0, n % 7 == 0 and n != 7))
        if is_there
    ]
    assert [place for page in found for place in places(page)] == wanted
    assert len(statements.about(about)) >= len(found) - 1


def test_what_is_frequent_only_among_others_is_soon_looked_up(memory, monkeypatch):
    """A frequent word that the threads asked for do not have is not read on for."""
    monkeypatch.setattr(candidates, "READ", 1)
    monkeypatch.setattr(candidates, "READ_FILTERED", 1)
    monkeypatch.setattr(candidates, "FEW", 10)
    for n in range(120):
        text = "rare" if n == 3 else "words"
        memory.conversations.create(f"{n}", owner="me", messages=[user(text)])
    for n in range(60):
        memory.conversations.create(f"x{n}", owner="you", messages=[user("rare")])
    memory.search("needle")
    statements = Statements(memory)

    assert places(memory.search("rare", owner="me")) == [("3", 0)]
    assert len(statements.about("with found")) == 1


def test_neighbouring_messages_are_indexed_together(memory):
    messages = [user(f"{n} " + "x" * 398) for n in range(100)]
    memory.conversations.create("c", messages=messages)

    memory.search("anything")

    rows = stretches(memory)
    assert [(first, last) for *_, first, last in rows] == [
        (n, min(n + 10, 99)) for n in range(0, 100, 11)
    ]


def test_what_is_indexed_is_not_indexed_again_when_messages_are_added(memory):
    fill(memory, 1)
    memory.search("needle")
    before = stretches(memory)

    memory.conversations.add("0", user("added"))
    memory.search("needle")

    assert stretches(memory)[:-1] == before


def test_an_edit_is_indexed_from_the_first_difference_on(memory):
    messages = [user(f"{n} {'x' * STRETCH}") for n in range(6)]
    conversation = memory.conversations.create("c", messages=messages)
    memory.search("anything")
    before = stretches(memory)

    conversation.messages[3] = user("edited " + "y" * STRETCH)
    memory.conversations.save(conversation)
    memory.search("anything")

    after = stretches(memory)
    assert after[:3] == before[:3]
    assert len(after) == len(before)
    assert places(memory.search("edited")) == [("c", 3)]
    assert places(memory.search('"3 xx"')) == []


def test_compacting_merges_what_was_indexed_bit_by_bit(memory):
    memory.conversations.create("c")
    for n in range(100):
        memory.conversations.add("c", user(f"{n} " + "x" * 200))
        memory.search("anything")
    assert len(stretches(memory)) == 100

    memory.compact()

    assert len(stretches(memory)) == 5
    assert places(memory.search('"73 x"')) == [("c", 73)]
    merged = stretches(memory)
    memory.compact()
    assert stretches(memory) == merged


def test_what_was_deleted_leaves_the_index_with_the_next_search(memory):
    fill(memory, 3)
    memory.search("needle")

    memory.conversations.delete("1")
    memory.search("needle")

    assert {name for name, *_ in stretches(memory)} == {
        "conversation:0",
        "conversation:2",
    }
    [(count,)] = writer(memory).execute("select count(*) from search_thread").fetchall()
    assert count == 2


def test_what_was_deleted_leaves_the_index_also_after_its_tombstone_is_gone(
    memory, clock
):
    fill(memory, 3)
    memory.search("needle")
    memory.conversations.delete("1")
    clock.advance(timedelta(days=31))
    memory.prune(Retention(last=1))

    memory.search("needle")

    numbers = writer(memory).execute("select distinct thread from search_stretch")
    assert numbers.fetchall() == [(1,), (3,)]


def test_compacting_leaves_nothing_of_what_was_deleted(path):
    with holdfast.open(path) as store:
        fill(store, 3)
        secret = user("The password is Quetzalcoatlus")
        store.conversations.create("secret", messages=[secret])
        store.search("needle")
        store.conversations.delete("secret")

        store.compact()

    # Trigrams stand in the index with what they share with their neighbours left out.
    assert b"zal" not in Path(path).read_bytes()


def test_an_index_of_another_python_is_made_anew(memory):
    """Unicode's case folding grows with its versions."""
    fill(memory, 3)
    memory.search("needle")
    for table in ("search_state", "search_thread"):
        writer(memory).execute(f"update {table} set form = form + 1")
    writer(memory).execute("delete from search_text where rowid > 0")

    assert places(memory.search("needle2.")) == [("2", 3)]
    assert places(memory.search("needle")) == [("2", 3), ("1", 3), ("0", 3)]
    forms = writer(memory).execute("select distinct form from search_thread")
    assert forms.fetchall() == [(FORM,)]


def test_a_long_conversation_is_indexed_a_part_at_a_time(memory, monkeypatch):
    """No transaction keeps others from saving for long, and nothing is done twice."""
    monkeypatch.setattr(index, "BATCH", 3 * STRETCH)
    messages = [user(f"{n} {'x' * STRETCH}") for n in range(10)]
    memory.conversations.create("c", messages=messages)
    steps = []

    def stop(done, total):
        steps.append((done, total, len(stretches(memory))))
        if len(steps) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        memory.search("anything", progress=stop)
    begun = stretches(memory)
    found = memory.search('"7 x"', progress=stop)

    assert steps == [(0, 1, 3), (0, 1, 6), (0, 1, 9), (1, 1, 10)]
    assert stretches(memory)[:6] == begun
    assert places(found) == [("c", 7)]


def test_what_the_first_search_leaves_is_merged_in_steps(memory, monkeypatch):
    """A search looks into every part of the index, and each transaction leaves one."""
    monkeypatch.setattr(index, "BATCH", STRETCH)
    monkeypatch.setattr(search_index, "STEP", 1)
    chance = random.Random(1)
    for number in range(5):
        messages = [user(f"needle{number}. {chance.randbytes(STRETCH).hex()}")]
        memory.conversations.create(f"{number}", messages=messages)
    statements = Statements(memory).seen

    memory.search("needle")

    merges = [n for n, sql in enumerate(statements) if "('merge'" in sql]
    assert len(merges) > 2
    assert all("commit" in statements[a:b] for a, b in pairwise(merges))
    assert (parts(memory), merging(memory)) == (1, 8)
    memory.conversations.add("1", user("more"))
    assert places(memory.search("needle3")) == [("3", 0)]
    assert (parts(memory), merging(memory)) == (2, 8)


def parts(store):
    sql = "select count(distinct segid) from search_text_idx"
    return writer(store).execute(sql).get


def merging(store):
    sql = "select v from search_text_config where k = 'automerge'"
    return writer(store).execute(sql).get


def test_an_update_made_from_something_older_changes_nothing(memory):
    fill(memory, 2)
    backend = backend_of(memory)

    def write(*updates):
        batch = IndexBatch(form=FORM, without=PIN, threads=updates)
        run(backend.index(batch))

    write(Indexing(number=1, found=Indexed(), becomes=Indexed(1)))
    memory.search("needle")
    before = index_of(memory)

    older = Indexing(number=1, found=Indexed(1), becomes=None)
    other = Indexing(number=1, found=Indexed(), becomes=Indexed(9, FORM))
    write(older, other)

    assert index_of(memory) == before


@pytest.mark.parametrize(
    "odd", ['say "this" AND ', "a\0b", "\ud83d", "\ufffe", "*('%_)"]
)
def test_the_index_is_used_for_any_characters(memory, odd):
    fill(memory)
    memory.conversations.create("odd", messages=[user(f"{PADDING}<{odd}>{PADDING}")])
    memory.search("needle")
    store, reads = watched(memory)

    found = store.search(f"<{odd}>")

    assert places(found) == [("odd", 0)]
    assert reads.count == 1


# --- where there is no index ----------------------------------------------------------


class WithoutIndex:
    """A backend that has no ability to search."""

    def __init__(self, backend):
        self._backend = backend
        self.abilities = backend.abilities - {"search"}

    async def facts(self):
        return replace(await self._backend.facts(), abilities=self.abilities)

    def __getattr__(self, name):
        assert name not in {"index", "mend"}
        return getattr(self._backend, name)


class TestWithoutIndex(
    SearchTests,
    SearchedTextTests,
    SnippetTests,
    SearchOrderTests,
    SearchScopeTests,
    SearchUpkeepTests,
    IndexingTests,
):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.url = str(tmp_path / "store.db")

    def open_store(self, **options):
        context = holdfast.open(self.url, **options).runner.context
        return Store(replace(context, backend=WithoutIndex(context.backend)))


def test_a_store_that_was_never_searched_is_searched_for_reading_only(path):
    with holdfast.open(path) as store:
        fill(store)

    with holdfast.open(path, read_only=True) as store:
        assert places(store.search("needle7.")) == [("7", 3)]
        assert len(store.search("needle", limit=None)) == COUNT


def test_a_store_that_is_being_written_to_is_searched(path):
    with holdfast.open(path, busy_timeout=0.05) as store:
        fill(store, 3)
        store.search("needle")
        store.conversations.add("0", user("one more needle0."))
        rival = apsw.Connection(path)
        rival.execute("begin immediate")

        found = store.search("needle0.")
        with pytest.raises(Busy):
            store.conversations.add("1", user("not now"))
        rival.close()

        assert places(found) == [("0", 10), ("0", 3)]


def test_a_store_on_a_full_disk_is_searched(tmp_path):
    disk = FaultyDisk("full")
    with disk.open(str(tmp_path / "store.db")) as store:
        fill(store, 3)

        disk.arm(Fault(at=1, lasting=True, effect=disk_full, kinds=CHANGES))
        full = places(store.search("needle1."))
        disk.heal()

        assert full == [("1", 3)]
        assert places(store.search("needle1.")) == [("1", 3)]
        assert store.verify().problems == ()
    disk.remove()


# --- many at once, and crashes --------------------------------------------------------


@pytest.mark.processes
def test_processes_search_and_save_at_the_same_time(path):
    [outcome] = run_program("kill_search", "swarm", path, 4, 25)

    assert outcome == {"processes": 4, "wrong": []}


@pytest.mark.processes
def test_a_search_that_is_killed_leaves_a_sound_store(tmp_path):
    [outcome] = run_program("kill_search", "kill", tmp_path, 2)

    assert outcome["wrong"] == []
    assert outcome["status"] == 0
    assert outcome["kills"] > 10


def test_two_stores_that_index_the_same_at_the_same_time_index_it_once(path):
    """One catches up while the other is between reading and writing."""
    with holdfast.open(path) as store, holdfast.open(path) as rival:
        fill(store)
        overtaken = []

        class Slow:
            def __init__(self, backend):
                self._backend = backend

            def __getattr__(self, name):
                if name == "index" and not overtaken:
                    overtaken.append(rival.search("needle", limit=None))
                return getattr(self._backend, name)

        slow = Store(
            replace(store.runner.context, backend=Slow(backend_of(store))),
        )
        found = slow.search("needle", limit=None)

        assert places(found) == places(overtaken[0])
        rows = stretches(store)
        assert len({row[0::2] for row in rows}) == len(rows)
        assert not search_index.is_damaged(writer(store))


def test_a_conversation_that_changes_during_the_search_is_searched_as_it_is(memory):
    fill(memory, 3)
    memory.search("needle")
    memory.conversations.create("new", messages=[user("new")])

    def change(done, total):
        memory.conversations.add("1", user("added needle"))
        memory.conversations.delete("0")

    found = memory.search("needle", progress=change)

    assert places(found) == [("1", 10), ("1", 3), ("2", 3)]


def test_a_conversation_replaced_and_pruned_during_the_search_is_read_again(memory):
    fill(memory, 3)
    memory.search("needle")

    def replace_all():
        conversation = memory.conversations.load("1")
        conversation.messages = [user(f"other {n}") for n in range(40)]
        conversation.messages[30] = user("needle1. moved")
        memory.conversations.save(conversation)
        memory.prune(Retention(last=1))

    changes = [replace_all]

    class Disturbed(Layer):
        async def read(self, keys):
            while changes and isinstance(keys[0], SegmentsKey):
                changes.pop()()
            return await self.backend.read(keys)

    context = memory.runner.context
    disturbed = Store(replace(context, backend=Disturbed(context.backend)))

    assert places(disturbed.search("needle1.")) == [("1", 30)]
    assert changes == []


# --- statements -----------------------------------------------------------------------


def test_every_statement_is_used():
    files = (search_index.__file__, candidates.__file__)
    source = "".join(Path(file).read_text() for file in files)

    assert [name for name in search_index.QUERIES if f'"{name}"' not in source] == []


def test_candidates_are_found_by_their_numbers(memory):
    fill(memory, 1)
    memory.search("needle")
    sql = search_index.QUERIES["candidates"]
    values = dict.fromkeys(re.findall(r":(\w+)", sql))

    plan = [
        row[-1] for row in writer(memory).execute(f"explain query plan {sql}", values)
    ]

    assert any("SEARCH t USING INTEGER PRIMARY KEY" in step for step in plan)
