"""The queries by which a prune finds its work without reading the whole store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from holdfast._port import (
    FamilyMoves,
    FamilyPlan,
    FamilySaves,
    FamilySizes,
    FamilyThreads,
    Horizon,
    NumberedSaves,
    Outlines,
    Prune,
    Relink,
    Surplus,
    ThreadMoves,
    Turn,
    Write,
)
from holdfast._values.records import Checkpoint
from holdfast.errors import Conflict
from holdfast.testing.conformance.cases import raises
from holdfast.testing.conformance.queries import PortCases


class SurplusTests(PortCases):
    """The families that may have checkpoints to remove, and the content of them."""

    def surplus(self, limit: int = 100, **fields: Any) -> dict[int, int]:
        """The families of all pages, with how many checkpoints they have."""
        sizes: dict[int, int] = {}
        after: int | None = 0
        while after is not None:
            page = self.page_of(Surplus(limit=limit, after=after, **fields))
            sizes |= {size.family: size.checkpoints for size in page}
            after = page.cursor
        return sizes

    def test_families_with_a_thread_that_saved_more_are_found(self) -> None:
        one, two, three = (self.filled(n, f"{n}")[0].family for n in (1, 2, 3))

        assert self.surplus() == self.surplus(more_than=1) == {two: 2, three: 3}
        assert self.surplus(more_than=2) == {three: 3}
        assert self.surplus(more_than=3) == {}
        assert one not in self.surplus()

    def test_pages_of_any_size_together_give_all(self) -> None:
        for n in range(6):
            self.filled(2, f"{n}")
            self.thread(f"{n}").fork(f"fork of {n}")
        self.filled(1, "alone")

        whole = self.surplus()

        assert len(whole) == 6
        assert list(whole) == sorted(whole)
        assert [self.surplus(limit) for limit in (1, 2, 5, 13, 14)] == [whole] * 5

    def test_each_fork_is_counted_by_itself(self) -> None:
        saved = self.filled(2)
        for n in range(3):
            self.thread().fork(f"fork {n}").save({"n": 9})

        assert self.surplus(more_than=2) == {}
        self.thread("fork 1").save({"n": 10})
        self.thread("fork 1").save({"n": 11})
        assert self.surplus(more_than=2) == {saved[0].family: 7}

    def test_a_checkpoint_that_is_no_head_is_found(self) -> None:
        saved = self.filled(1)
        fork = self.thread().fork("fork")
        fork.save({"n": 2})
        fork.rewind(saved[0])

        assert self.surplus() == {saved[0].family: 2}

    def test_only_what_was_saved_before_a_time_is_found(self) -> None:
        self.filled(2, "old")
        self.clock.advance(timedelta(hours=1))
        time = self.clock()
        self.filled(2, "new")
        old = self.thread("old").head
        assert old is not None

        assert self.surplus(saved_before=time) == {old.family: 2}
        assert self.surplus(saved_before=0) == {}

    def test_what_deleted_threads_left_behind_is_found(self) -> None:
        saved = self.filled(1)
        self.thread().fork("fork")
        self.thread().delete()

        assert self.surplus(more_than=9, saved_before=0) == {saved[0].family: 1}

    def test_several_families_are_read_at_once(self) -> None:
        saved = {n: self.filled(n, f"{n}") for n in (1, 2, 3)}
        self.thread("1").fork("fork").save({"n": 9})
        self.thread("3").delete()
        families = tuple(saved[n][0].family for n in (1, 3))

        threads = self.page_of(FamilyThreads(families))
        checkpoints = self.page_of(FamilySaves(families))

        assert [(t.id, t.deleted_at is None) for t in threads] == [
            ("1", True),
            ("3", False),
            ("fork", True),
        ]
        fork = self.thread("fork").head
        assert list(checkpoints) == [saved[1][0], fork]
        assert len(self.page_of(FamilySaves(()))) == 0

    def test_a_plan_is_stale_once_what_goes_has_a_child_beyond_the_horizon(
        self,
    ) -> None:
        first, second, _ = self.filled(3)
        [known] = self.page_of(Horizon())
        relink = Relink(second, None, second.link or first.sha256)
        plan = FamilyPlan(first.family, (first,), (relink,), (), known=known)
        self.thread().fork("fork", at=first).save({"n": 9})

        with raises(Conflict, code="plan_stale"):
            self.carry_out(Prune(at=1, families=(plan,)))

        assert self.thread().load(first) == {"n": 1}

    def test_a_move_keeps_what_stands_behind_its_kind(self) -> None:
        if self.store.runner.context.keys:
            return  # the encrypting layer sets the proof of a move itself
        first, second, _ = self.filled(3)
        self.rewind(first, proof="~1", last_move=0)

        with raises(Conflict, code="plan_stale"):
            self.rewind(second, proof="~2", last_move=0)
        assert self.thread().load() == {"n": 1}
        [logged] = self.page_of(FamilyMoves(families=(first.family,)))
        self.rewind(second, proof="~2", last_move=logged.seq)
        self.thread().forget("nothing")

        assert (logged.kind, logged.target) == ("rewind~1", first.id)
        number = first.thread_number
        query = ThreadMoves(family=first.family, number=number, limit=2)
        forgotten, rewound = self.page_of(query)
        assert (forgotten.kind, rewound.kind) == ("forget", "rewind~2")
        before = replace(query, before=forgotten.seq)
        assert list(self.page_of(before)) == [rewound, logged]

    def rewind(self, to: Checkpoint, **fields: Any) -> None:
        chat, turn = self.thread(), Turn("rewind", to)
        write = Write(thread=chat.id, at=1, expect=chat.head, turn=turn, **fields)
        self._committed(write)

    def test_a_plan_that_rewrites_moves_knows_the_log(self) -> None:
        if self.store.runner.context.keys:
            return
        first, *_ = self.filled(3)
        for name in ("one", "two"):
            self.thread().label(name)
        moves = self.page_of(FamilyMoves(families=(first.family,)))
        newer = replace(moves[0], kind="mark~3")
        plan = FamilyPlan(first.family, (), (), (), moves=(newer,))

        for logged in ((moves[0].seq, 2), (moves[1].seq, 3)):
            with raises(Conflict, code="plan_stale"):
                outdated = replace(plan, logged=logged)
                self.carry_out(Prune(at=1, families=(outdated,)))
        current = replace(plan, logged=(moves[1].seq, 2))
        self.carry_out(Prune(at=1, families=(current,)))

        found = self.page_of(FamilyMoves(families=(first.family,)))
        assert list(found) == [newer, moves[1]]

    def test_a_large_family_is_counted_and_read_in_pages(self) -> None:
        saved = self.filled(4)
        fork = self.thread().fork("fork", at="@2").save({"n": 9}, label="x", tags=["t"])
        self.filled(1, "other")
        family, thread = fork.family, saved[0].thread_number

        counted = self.page_of(FamilySizes(families=(family,), up_to=saved[-1].seq))
        first = self.page_of(Outlines(family=family, thread=thread, limit=3))
        rest = Outlines(family=family, thread=thread, after=saved[2].seq, limit=3)
        [forked] = self.page_of(
            Outlines(family=family, thread=fork.thread_number, limit=3)
        )
        numbers = (saved[1].seq, fork.seq, 1 << 40)

        assert [(size.family, size.checkpoints) for size in counted] == [(family, 4)]
        found = [*first, *self.page_of(rest)]
        assert [o.seq for o in found] == [c.seq for c in saved]
        assert [o.parent for o in found] == [None, *(c.seq for c in saved[:-1])]
        assert [o.runs for o in found] == [c.runs for c in saved]
        assert (forked.parent, forked.thread) == (saved[1].seq, fork.thread_number)
        assert (forked.is_labelled, forked.is_tagged) == (True, True)
        page = self.page_of(NumberedSaves(family=family, numbers=numbers))
        assert list(page) == [saved[1], fork]
