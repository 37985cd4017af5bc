"""Rewind, undo, redo and hard rewind."""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.testing.conformance.cases import LONG, Cases, raises, steps


class RewindTests(Cases):
    """Moving the head deletes nothing."""

    def test_rewind_moves_the_head(self) -> None:
        first, _, _ = self.filled(3)
        chat = self.thread()

        assert chat.rewind(first) == first
        assert (chat.head, chat.load(), chat.step) == (first, {"n": 1}, 1)

    def test_what_was_ahead_is_still_there(self) -> None:
        first, second, third = self.filled(3)
        chat = self.thread()
        chat.rewind(first)

        assert chat.load(third) == {"n": 3}
        assert list(chat.history(all=True)) == [third, second, first]
        assert chat.rewind(third) == third

    def test_a_save_after_a_rewind_goes_on_from_there(self) -> None:
        first, second, _ = self.filled(3)
        chat = self.thread()
        chat.rewind(first)

        saved = chat.save({"n": "other"})

        assert (saved.parent, saved.step) == (first.id, 2)
        assert [c.id for c in chat.history()] == [saved.id, first.id]
        assert chat.load(second) == {"n": 2}

    def test_branches_with_long_values_do_not_mix(self) -> None:
        chat = self.thread()
        start = chat.append(m=["start" + LONG])
        for name in "abc":
            chat.rewind(start)
            chat.append(m=[name + LONG])
            chat.save({"m": [*chat.load()["m"], name * 2 + LONG], "text": name + LONG})
        tips = [c for c in chat.history(all=True) if c.step == 3]

        assert [chat.load(tip)["m"][1:] for tip in tips] == [
            [name + LONG, name * 2 + LONG] for name in "cba"
        ]
        assert [chat.load(tip)["text"][0] for tip in tips] == ["c", "b", "a"]

    def test_the_head_stays_where_it_was_put_after_reopening(self) -> None:
        first, _, third = self.filled(3)
        self.thread().rewind(first)

        chat = self.reopen().thread("chat")

        assert chat.head == first
        assert chat.undo() == third


class UndoTests(Cases):
    """Undo reverts the last save or rewind, redo repeats it."""

    def test_undo_takes_a_save_back(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()

        assert chat.undo() == first
        assert chat.load() == {"n": 1}
        assert chat.load(second) == {"n": 2}

    def test_redo_follows_undo_step_by_step(self) -> None:
        _, second, third = self.filled(3)
        chat = self.thread()
        chat.undo()
        chat.undo()

        assert [chat.redo(), chat.redo()] == [second, third]
        with raises(NotFound):
            chat.redo()
        assert chat.head == third

    def test_a_long_sequence_of_moves_is_taken_back_in_order(self) -> None:
        a, b, c = self.filled(3)
        chat = self.thread()
        chat.rewind(a)
        d = chat.save({"n": 4})
        chat.rewind(c)
        chat.undo()
        e = chat.save({"n": 5})
        chat.rewind(b)

        assert [chat.undo() for _ in range(6)] == [e, d, a, c, b, a]
        assert [chat.redo() for _ in range(6)] == [b, c, a, d, e, b]

    def test_undo_in_a_fork_ends_where_the_fork_began(self) -> None:
        self.filled(3)
        fork = self.thread().fork("fork", at="@~1")
        fork.save({"n": "fork"})

        assert fork.undo().step == 2
        with raises(NotFound):
            fork.undo()

    def test_marks_and_records_are_no_moves(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()
        chat.undo()
        chat.label("x")
        chat.tag("t")
        chat.describe(owner="me")
        chat.record("key", 1)

        assert chat.redo().id == second.id
        assert chat.undo().id == first.id

    def test_undo_skips_what_was_deleted(self) -> None:
        first, second, _ = self.filled(3)
        chat = self.thread()
        chat.undo()
        chat.delete(second)

        assert chat.head == first
        with raises(NotFound):
            chat.undo()

    def test_every_move_is_in_the_log(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()
        chat.rewind(first)
        chat.undo()
        chat.redo()

        log = [(move.kind, move.source, move.target) for move in chat.moves()]

        assert log == [
            ("redo", second.id, first.id),
            ("undo", first.id, second.id),
            ("rewind", second.id, first.id),
            ("save", first.id, second.id),
            ("save", None, first.id),
        ]

    def test_the_log_comes_in_pages(self) -> None:
        self.filled(5)
        chat = self.thread()
        first = chat.moves(2)
        second = chat.moves(2, before=first.cursor)
        third = chat.moves(2, before=second.cursor)

        assert [*first, *second, *third] == list(chat.moves())
        assert third.cursor is None


class HardRewindTests(Cases):
    """``rewind(hard=True)`` deletes the checkpoints after the target."""

    def test_a_hard_rewind_deletes_what_was_ahead(self) -> None:
        chat = self.thread()
        first, *rest = (chat.append(m=[f"{n} {LONG}"]) for n in range(4))

        chat.rewind(first, hard=True)

        assert chat.head == first
        assert list(chat.history(all=True)) == [first]
        assert self.store.stats().checkpoints == self.store.stats().segments == 1
        for gone in rest:
            with raises(NotFound):
                chat.load(gone)

    def test_saving_after_a_hard_rewind_is_as_ever(self) -> None:
        chat = self.thread()
        first, *_ = (chat.append(m=[f"{n} {LONG}"]) for n in range(4))
        chat.rewind(first, hard=True)

        chat.append(m=["new" + LONG])

        assert chat.load() == {"m": [f"0 {LONG}", "new" + LONG]}
        assert steps(chat.history(all=True)) == [2, 1]
        assert chat.undo() == first

    def test_a_hard_rewind_keeps_what_a_fork_needs(self) -> None:
        chat = self.thread()
        saved = [chat.append(m=[f"{n} {LONG}"]) for n in range(5)]
        fork = chat.fork("fork", at=saved[2])
        fork.append(m=["fork" + LONG])

        chat.rewind(saved[0], hard=True)

        assert [c.id for c in chat.history(all=True)] == [c.id for c in saved[2::-1]]
        assert fork.load() == {"m": [*(f"{n} {LONG}" for n in range(3)), "fork" + LONG]}
        assert steps(fork.history()) == [4, 3, 2, 1]
        with raises(NotFound):
            chat.load(saved[3])

    def test_a_hard_rewind_in_a_fork_leaves_the_source_alone(self) -> None:
        saved = self.filled(4)
        chat = self.thread()
        fork = chat.fork("fork")
        fork.save({"n": "fork"})

        fork.rewind(saved[0], hard=True)

        assert fork.load() == {"n": 1}
        assert list(chat.history()) == saved[::-1]
        assert chat.load() == {"n": 4}

    def test_the_journal_of_deleted_checkpoints_goes_with_them(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()
        chat.record("call", 1, checkpoint=first)
        chat.record("call", 2, checkpoint=second)
        chat.record("call", 3)

        chat.rewind(first, hard=True)

        assert chat.recorded("call", checkpoint=first) == 1
        assert chat.recorded("call", checkpoint=second) is None
        assert chat.recorded("call") == 3
