"""Undo and redo: which move is taken back."""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.testing import raises
from holdfast.testing.conformance.cases import Cases


class TakenBackTests(Cases):
    """Any sequence of saves, rewinds, undos and redos."""

    def test_undo_again_goes_one_further(self) -> None:
        first, second, _ = self.filled(3)
        chat = self.thread()

        assert [chat.undo(), chat.undo()] == [second, first]
        with raises(NotFound):
            chat.undo()
        assert chat.head == first

    def test_undo_and_redo_can_alternate(self) -> None:
        first, second, third = self.filled(3)
        chat = self.thread()
        moves = (chat.undo, chat.redo, chat.undo, chat.undo, chat.redo, chat.undo)

        assert [move() for move in moves] == [
            second,
            third,
            second,
            first,
            second,
            first,
        ]

    def test_a_save_after_undo_leaves_nothing_to_redo(self) -> None:
        first, second, _ = self.filled(3)
        chat = self.thread()
        chat.undo()
        new = chat.save({"n": "new"})

        with raises(NotFound):
            chat.redo()
        assert chat.head == new
        assert [chat.undo(), chat.undo()] == [second, first]
        assert [chat.redo(), chat.redo()] == [second, new]

    def test_a_thread_without_saves_has_nothing_to_undo(self) -> None:
        with raises(NotFound):
            self.thread("nobody").undo()
        with raises(NotFound):
            self.thread("nobody").redo()
        self.filled(1)
        with raises(NotFound):
            self.thread().undo()
        with raises(NotFound):
            self.thread().redo()

    def test_many_moves_are_taken_back_and_made_again(self) -> None:
        saved = self.filled(110)
        chat = self.thread()
        for _ in range(105):
            chat.undo()
        assert chat.head == saved[4]

        for _ in range(105):
            chat.redo()

        assert chat.head == saved[109]
        with raises(NotFound):
            chat.redo()

    def test_a_hard_rewind_deletes_other_branches_saved_later(self) -> None:
        first, second, third = self.filled(3)
        chat = self.thread()
        chat.rewind(first)
        chat.save({"n": "branch"})

        chat.rewind(second, hard=True)

        assert list(chat.history(all=True)) == [second, first]
        with raises(NotFound):
            chat.load(third)
