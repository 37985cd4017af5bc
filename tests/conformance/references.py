"""References: what is decided above the records that they lead to."""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.testing import raises
from holdfast.testing.conformance.cases import Cases, steps


class ForeignReferenceTests(Cases):
    """Records that are held, and checkpoints of other threads."""

    def test_a_checkpoint_of_another_thread_is_foreign(self) -> None:
        self.filled(1)
        theirs = self.thread("other").save({})

        with raises(NotFound, "foreign") as refused:
            self.thread().load(theirs)

        assert refused.error.reference == theirs.id
        with raises(NotFound):
            self.thread().load(theirs.id)

    def test_a_record_that_is_held_means_the_stored_one(self) -> None:
        held, _ = self.filled(2)
        self.thread().label("later", held)

        assert self.thread().get(held).label == "later"

    def test_a_step_that_was_rewound_is_not_on_the_line(self) -> None:
        self.filled(4)
        chat = self.thread()
        chat.rewind("@2")
        chat.save({"n": "other"})

        assert chat.load("@3") == {"n": "other"}
        with raises(NotFound):
            chat.get("@4")

    def test_a_step_beyond_the_head_is_not_found(self) -> None:
        self.filled(2)

        for wrong in ("@3", "@0", "@999999999999999999"):
            with raises(NotFound) as refused:
                self.thread().get(wrong)
            assert "chat" in str(refused.error)

    def test_before_takes_any_reference(self) -> None:
        first, _, third = self.filled(3)
        chat = self.thread()
        chat.label("x", third)

        assert steps(chat.history(before="@~1")) == [1]
        assert steps(chat.history(before="label:x")) == [2, 1]
        assert steps(chat.history(before=third.id)) == [2, 1]
        assert list(chat.history(before=first)) == []
        with raises(NotFound):
            chat.history(before="nobody")

    def test_rewinding_to_nothing_known_is_not_found(self) -> None:
        self.filled(2)
        self.thread("other").save({}, id="theirs")

        for missing in ("nobody", "@~2", "label:x", "tag:x", "theirs"):
            with raises(NotFound):
                self.thread().rewind(missing)
        with raises(NotFound):
            self.thread("nobody").rewind("@")
        assert self.thread().step == 2

    def test_marking_what_is_not_there_is_not_found(self) -> None:
        self.filled(1)

        with raises(NotFound):
            self.thread().label("x", "nobody")
        with raises(NotFound):
            self.thread("nobody").tag("x")

    def test_describing_what_is_not_there_is_not_found(self) -> None:
        with raises(NotFound):
            self.thread("nobody").describe(owner="me")
        assert list(self.store.threads()) == []

    def test_a_thread_that_does_not_exist_has_no_family(self) -> None:
        for ask in (self.thread("nobody").family, self.thread("nobody").tree):
            with raises(NotFound, "not_found"):
                ask()


class EarlierHeadTests(Cases):
    """``@{1}``: where the head was before its last moves; ``@{upstream}``."""

    def test_the_head_before_its_last_moves(self) -> None:
        saved = self.filled(3)
        chat = self.thread()
        chat.rewind("@1")
        chat.undo()

        heads = [chat.get(f"@{{{n}}}") for n in range(5)]

        assert heads == [saved[2], saved[0], saved[2], saved[1], saved[0]]

    def test_marks_are_no_moves_of_the_head(self) -> None:
        first, _ = self.filled(2)
        chat = self.thread()
        chat.label("x", first)
        chat.describe(owner="ann")

        assert chat.get("@{1}").id == first.id

    def test_more_moves_than_there_were_are_not_found(self) -> None:
        self.filled(2)

        for wrong in ("@{2}", "@{999999999999999999999}"):
            with raises(NotFound):
                self.thread().get(wrong)

    def test_upstream_is_where_a_fork_began(self) -> None:
        _, second, _ = self.filled(3)
        fork = self.thread().fork("fork", at=second)
        fork.save({"n": "fork"})
        fork.rewind("@1")

        assert fork.get("@{upstream}") == second
        with raises(NotFound):
            self.thread().get("@{upstream}")
