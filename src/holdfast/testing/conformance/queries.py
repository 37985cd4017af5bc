"""Verbs and queries of the port, asked as the engine asks them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from holdfast._api.store import Store
from holdfast._engine.context import Context
from holdfast._port import (
    Ancestors,
    Kinds,
    Matches,
    OwnEntries,
    Prune,
    Query,
    Receipt,
    Saves,
    SegmentSizes,
    Write,
)
from holdfast._values import codec
from holdfast._values.records import UNSET, Checkpoint, Entry, Page, Unset
from holdfast.testing.conformance.bridge import finished
from holdfast.testing.conformance.cases import LONG, Cases

R = TypeVar("R")


async def _commit(context: Context, write: Write) -> Receipt:
    [receipt] = await context.backend.commit([write])
    return receipt


async def _scan(context: Context, query: Query[R]) -> Page[R]:
    return await context.backend.scan(query)


async def _prune(context: Context, plan: Prune) -> None:
    await context.backend.prune(plan)


class PortCases(Cases):
    """Commits, scans and prunes through the port."""

    def _committed(self, write: Write, store: Store | None = None) -> Receipt:
        """The receipt of one write."""
        runner = (store or self.store).runner
        receipt: Receipt = finished(runner.run(_commit, write))
        return receipt

    def page_of(self, query: Query[R]) -> Page[R]:
        page: Page[R] = finished(self.store.runner.run(_scan, query))
        return page

    def carry_out(self, plan: Prune) -> None:
        finished(self.store.runner.run(_prune, plan))

    def write(
        self,
        thread: str = "chat",
        *,
        values: dict[str, object] | None = None,
        checkpoint: str = "",
        expect: Checkpoint | Unset | None = UNSET,
        store: Store | None = None,
        **fields: Any,
    ) -> list[Entry]:
        """Commit one write with these values as entries; the entries in force."""
        at = self.clock()
        entries = tuple(
            Entry(thread, checkpoint, key, codec.encode(value, key), at)
            for key, value in (values or {}).items()
        )
        write = Write(thread=thread, at=at, expect=expect, entries=entries, **fields)
        return list(self._committed(write, store).entries)

    def listed(self, query: Query[Entry]) -> list[tuple[str, str, object]]:
        """The entries of a listing: thread, key, value."""
        return described(self.page_of(query))

    def family(self, thread: str = "chat") -> int:
        """The number of a thread's family."""
        head = self.thread(thread).head
        assert head is not None
        return head.family


def described(entries: Iterable[Entry]) -> list[tuple[str, str, object]]:
    """Thread, key and value of each entry."""
    return [(entry.thread, entry.key, entry.value) for entry in entries]


class QueryTests(PortCases):
    """Parts of queries that make an operation faster, or that few operations use."""

    def test_saves_are_listed_from_either_end_and_between_two(self) -> None:
        saved = self.filled(4)
        own = self.thread().fork("fork", at="@2").save({"n": 9})
        self.filled(1, "other")

        def listed(**fields: Any) -> list[Checkpoint]:
            return list(self.page_of(Saves(family=own.family, **fields)))

        assert listed() == [own, *saved[::-1]]
        assert listed(oldest_first=True) == [*saved, own]
        assert listed(oldest_first=True, thread="chat") == saved
        assert listed(oldest_first=True, after=saved[0].seq, limit=2) == saved[1:3]
        assert listed(after=saved[1].seq, before=own.seq) == saved[:1:-1]

    def test_a_line_is_walked_between_two_steps(self) -> None:
        saved = self.filled(6)

        def walked(**fields: Any) -> list[Checkpoint]:
            return list(self.page_of(Ancestors(start=saved[-1], **fields)))

        assert walked(down_to_step=3) == [*saved[:1:-1]]
        assert walked(from_step=5, down_to_step=3) == [saved[4], saved[3], saved[2]]
        assert walked(skip=1, limit=2, down_to_step=2) == [saved[4], saved[3]]
        assert walked(skip=3, limit=9, down_to_step=3) == [saved[2]]

    def test_beginnings_of_ids_are_matched_in_one_family_or_in_all(self) -> None:
        chat, other = self.thread(), self.thread("other")
        for thread, id_ in ((chat, "abc"), (other, "abd"), (chat, "abe"), (chat, "b")):
            thread.save({}, id=id_)
        family = self.family()

        def matched(**fields: Any) -> list[str]:
            return [c.id for c in self.page_of(Matches(prefix="ab", **fields))]

        assert matched() == ["abc", "abd", "abe"]
        assert matched(family=family) == ["abc", "abe"]
        assert matched(after="abc") == ["abd", "abe"]
        assert matched(family=family, after="abc") == ["abe"]
        assert matched(limit=2) == ["abc", "abd"]

    def test_what_several_threads_recorded_on_themselves_is_one_listing(self) -> None:
        [saved] = self.filled(1)
        for name in ("other", "chat", "third", "gone"):
            self.thread(name).record("x:1", name)
        self.thread("other").record("y:1", "another beginning")
        self.thread().record("x:2", "of a checkpoint", checkpoint=saved)
        self.thread().record("x:0", "last")
        self.thread("gone").delete()
        asked = ("chat", "gone", "never saved", "other")

        found = self.listed(OwnEntries(threads=asked, prefix="x:"))

        assert found == [
            ("other", "x:1", "other"),
            ("chat", "x:1", "chat"),
            ("chat", "x:0", "last"),
        ]
        assert self.listed(OwnEntries(threads=(), prefix="x:")) == []

    def test_threads_are_counted_by_their_kinds(self) -> None:
        for name, kind in (("a", "one"), ("b", "two"), ("c", "two"), ("d", "three")):
            self.store.thread(name, kind=kind).save({"n": 1})
        self.store.thread("e", kind="one").record("never", "saved to")
        self.thread("c").fork("f")
        self.thread("d").delete()

        counted = {count.kind: count.threads for count in self.page_of(Kinds())}

        assert {kind: counted.get(kind, 0) for kind in ("one", "two", "three")} == {
            "one": 1,
            "two": 3,
            "three": 0,
        }

    def test_a_scope_counts_and_finds_what_is_its_own(self) -> None:
        part = self.store.scope("part")
        part.thread("chat").save({"text": LONG}, id="abc", journal={"k": 1})
        part.thread("chat").append(messages=[LONG])
        self.thread().save({"n": 1}, id="abe")
        facts = part.stats()
        part.scope("inner").thread("chat").save({"n": 1}, id="abd")

        assert (facts.threads, facts.checkpoints, facts.journal_entries) == (1, 2, 1)
        assert facts.segments == 2
        assert 0 < facts.stored_bytes < facts.logical_bytes + 2000
        assert [store.get("ab").id for store in (self.store, part)] == ["abe", "abc"]

    def test_segments_and_blocks_are_listed_by_their_numbers(self) -> None:
        self.must_be_able("pack")
        self.must_be_able("compact")
        for name in ("chat", "other"):
            for n in range(12):
                self.thread(name).append(messages=[f"{n} {LONG}"])
        self.store.compact()

        every = list(self.page_of(SegmentSizes(limit=100)))
        first = self.page_of(SegmentSizes(limit=1))
        assert first.cursor is not None
        rest = self.page_of(SegmentSizes(after=first.cursor, limit=100))

        numbers = [(size.family, size.number) for size in every]
        assert numbers == sorted(numbers)
        assert {family for family, _ in numbers} == {
            self.family("chat"),
            self.family("other"),
        }
        assert sum(size.count for size in every) == self.store.stats().segments
        assert max(size.count for size in every) > 1
        assert [*first, *rest] == every
