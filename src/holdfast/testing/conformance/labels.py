"""Labels, tags and descriptions of stored threads and checkpoints."""

from __future__ import annotations

from holdfast.errors import Conflict
from holdfast.testing.conformance.cases import Cases, raises


class MarkTests(Cases):
    """Labels and tags change; nothing else of a checkpoint does."""

    def test_a_checkpoint_can_be_labelled_later(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()

        assert chat.label("x", first).label == "x"
        assert chat.get("label:x").id == first.id
        assert chat.label("y").id == second.id
        assert chat.label(None, first).label is None
        assert chat.find(label="x") is None

    def test_a_label_is_set_only_over_the_expected_one(self) -> None:
        self.filled(1)
        chat, other = self.thread(), self.rival().thread("chat")
        assert other.label("theirs", expect=None).label == "theirs"

        for unseen in (None, "x"):
            with raises(Conflict, code="label_changed") as caught:
                chat.label("ours", expect=unseen)
            assert caught.error.thread == "chat"

        assert chat.label("ours", expect="theirs").label == "ours"
        assert other.label(None, expect="ours").label is None

    def test_tags_are_added_and_taken(self) -> None:
        self.filled(1)
        chat = self.thread()

        assert chat.tag("b", "a").tags == ("b", "a")
        assert chat.tag("a", "c").tags == ("b", "a", "c")
        assert chat.untag("b", "never").tags == ("a", "c")
        assert chat.untag("a", "c").tags == ()
        assert chat.find(tag="a") is None

    def test_marks_change_nothing_else(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()
        chat.label("x", first)
        marked = chat.tag("t", ref=first)

        assert (marked.digest, marked.seq, marked.step) == (
            first.digest,
            first.seq,
            first.step,
        )
        assert chat.load("label:x") == {"n": 1}
        assert chat.head == second
        assert chat.save({"n": 3}).step == 3

    def test_a_mark_on_the_head_does_not_disturb_a_compare_and_swap(self) -> None:
        first = self.thread().save({"n": 1})
        self.thread().label("x")

        assert self.thread().save({"n": 2}, expect=first).step == 2

    def test_marks_are_there_after_reopening(self) -> None:
        first, _ = self.filled(2)
        self.thread().label("x", first)
        self.thread().tag("t", ref=first)

        chat = self.reopen().thread("chat")

        assert chat.get("label:x").id == chat.get("tag:t").id == first.id

    def test_a_thread_can_be_described_later(self) -> None:
        chat = self.store.thread("chat", kind="agent", owner="a", metadata={"k": 1})
        chat.save({})
        chat.describe(owner="b")
        about = chat.about
        assert about is not None
        assert (about.kind, about.owner, about.metadata) == ("agent", "b", {"k": 1})

        chat.describe(owner=None, metadata={"l": [2]})

        about = chat.about
        assert about is not None
        assert (about.owner, about.metadata) == (None, {"l": [2]})

    def test_a_conversation_can_be_given_to_another_agent(self) -> None:
        talks = self.store.conversations
        talks.create("c", owner="ann", agent="a")
        talks.thread("c").describe(metadata={"k": 1})
        loaded = talks.load("c")
        loaded.agent, loaded.title = "b", "Yours"

        talks.save(loaded)

        talks = self.reopen().conversations
        about = talks.thread("c").about
        assert about is not None
        assert (about.agent, about.owner, about.metadata) == ("b", "ann", {"k": 1})
        assert [talk.title for talk in talks.list(agent="b")] == ["Yours"]
        assert talks.list(agent="a").items == ()
        assert self.store.verify().ok

    def test_what_a_thread_begins_with_is_no_matter_later(self) -> None:
        self.store.thread("chat", kind="agent", owner="a").save({})
        self.store.thread("chat", kind="document", owner="b").save({})

        about = self.thread().about

        assert about is not None
        assert (about.kind, about.owner) == ("agent", "a")
