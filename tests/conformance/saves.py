"""Saving: what is decided before anything is written."""

from __future__ import annotations

import json

from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.retention import Retention
from holdfast.testing import raises
from holdfast.testing.conformance.cases import LONG, Cases, steps, untyped


class SavedStateTests(Cases):
    """What a save makes of a state and of its options."""

    def test_steps_count_from_one(self) -> None:
        assert steps(self.filled(3)) == [1, 2, 3]

    def test_the_same_state_again_is_a_checkpoint_without_segments(self) -> None:
        chat = self.thread()
        chat.save({"text": LONG, "list": [LONG]})
        before = self.store.stats()

        chat.save({"text": LONG, "list": [LONG]})

        after = self.store.stats()
        assert after.checkpoints == before.checkpoints + 1
        assert after.segments == before.segments

    def test_metadata_comes_back_with_its_types(self) -> None:
        metadata: dict[str, object] = {"t": (1, 2), "b": b"\0", "n": None, "": {}}

        saved = self.thread().save({}, metadata=metadata)

        assert saved.metadata == metadata
        assert self.thread().get().metadata == metadata

    def test_a_tag_given_twice_is_kept_once(self) -> None:
        assert self.thread().save({}, tags=["b", "a", "b"]).tags == ("b", "a")

    def test_size_is_that_of_the_values_as_json(self) -> None:
        chat = self.thread()
        chat.save({"list": ["a", LONG]})
        chat.append(list=["b", LONG])
        chat.append(list=["c"])

        values = chat.load().values()

        text = "".join(json.dumps(v, separators=(",", ":")) for v in values)
        assert chat.get().size == len(text)

    def test_no_two_checkpoints_have_the_same_digest(self) -> None:
        chat = self.thread()
        saved = [chat.save({"n": n % 2}) for n in range(4)]

        digests = {checkpoint.digest for checkpoint in saved}

        assert len(digests) == 4
        assert all(digest.startswith("sha256:") for digest in digests)

    def test_changing_an_object_after_saving_it_changes_nothing(self) -> None:
        chat = self.thread()
        state = {"messages": [{"text": LONG}]}
        chat.save(state)

        state["messages"].append({"text": "later"})
        chat.load()["messages"].clear()

        assert chat.load() == {"messages": [{"text": LONG}]}

    def test_what_cannot_be_stored_is_refused_with_its_path(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})

        with raises(Unstorable) as refused:
            chat.save({"n": 2, "messages": [{}, {"callback": print}]})

        assert refused.error.path == "state.messages[1].callback"
        assert chat.load() == {"n": 1}
        assert chat.step == 1

    def test_a_refused_first_save_makes_no_thread(self) -> None:
        with raises(Unstorable):
            self.thread().save({"f": print})
        with raises(Unstorable):
            self.thread().save({}, metadata={"f": print})
        with raises(Unstorable):
            self.thread().save({}, journal={"f": print})

        assert self.thread().about is None

    def test_a_text_is_not_a_list_of_tags(self) -> None:
        with raises(Unstorable):
            self.thread().save({}, tags="risky")


class UnchangedSaveTests(Cases):
    """``if_changed=True``: a save of what is there already is none."""

    def test_if_changed_gives_back_the_head_of_an_unchanged_thread(self) -> None:
        chat = self.thread()
        saved = chat.save({"text": LONG, "n": 1, "list": [LONG]})

        again = chat.save({"text": LONG, "n": 1, "list": [LONG]}, if_changed=True)

        assert again == saved
        assert self.store.stats().checkpoints == 1

    def test_if_changed_records_its_journal_either_way(self) -> None:
        chat = self.thread()
        head = chat.save({"n": 1}, journal={"a": 1}, if_changed=True)
        chat.save({"n": 1}, journal={"b": 2}, if_changed=True)

        assert chat.journal(checkpoint=head) == {"a": 1, "b": 2}
        assert chat.step == 1

    def test_if_changed_saves_what_is_new(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, if_changed=True)
        chat.save({"n": True}, if_changed=True)
        chat.save({"n": 1.0}, if_changed=True)
        chat.save([{"n": 1.0}], if_changed=True)

        assert chat.step == 4

    def test_if_changed_gives_back_the_head_as_it_is_now(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})
        chat.label("x")
        chat.tag("t")

        same = chat.save({"n": 1}, if_changed=True)

        assert (same.label, same.tags) == ("x", ("t",))
        assert same == chat.head

    def test_if_changed_compares_with_the_head_of_others(self) -> None:
        chat, same = self.thread(), self.rival().thread("chat")
        chat.save({"n": 1})
        same.save({"n": 2})

        assert chat.save({"n": 1}, if_changed=True).step == 3
        assert same.save({"n": 1}, if_changed=True).step == 3


class RepeatedAppendTests(Cases):
    """``expect=`` and ``id=`` of an append."""

    def test_an_appended_element_can_expect_a_head_too(self) -> None:
        chat = self.thread()
        first = chat.extend({"m": ["a"]}, expect=None)
        chat.append(m=["b"])

        with raises(Conflict, "head_moved"):
            chat.extend({"m": ["c"]}, expect=first)

        assert chat.load() == {"m": ["a", "b"]}

    def test_expecting_an_unknown_checkpoint_is_not_found(self) -> None:
        self.filled(1)

        with raises(NotFound):
            self.thread().save({}, expect="nobody")
        with raises(NotFound):
            self.thread("new").save({}, expect="nobody")

    def test_an_append_again_is_made_once(self) -> None:
        chat = self.thread()
        chat.append(m=["a", LONG])
        first = chat.extend({"m": ["b"]}, id="b")

        again = chat.extend({"m": ["b"]}, id="b")

        assert again == first
        assert chat.load() == {"m": ["a", LONG, "b"]}

    def test_an_append_of_other_elements_under_the_same_id_is_a_conflict(self) -> None:
        chat = self.thread()
        chat.extend({"m": [5], "k": [0]})
        chat.extend({"m": [21], "k": [1]}, id="b")

        for other in untyped(
            {"m": [1], "k": [1]},
            {"m": [5, 21], "k": [1]},
            {"m": [21]},
            {"m": [], "k": []},
            {"m": [21], "k": [1], "l": []},
        ):
            with raises(Conflict, "id_taken"):
                chat.extend(other, id="b")
        assert chat.load() == {"m": [5, 21], "k": [0, 1]}

    def test_an_append_again_is_made_once_though_its_parent_was_pruned(self) -> None:
        chat = self.thread()
        chat.extend({"m": [5], "k": [0]}, id="a")
        first = chat.extend({"m": [21], "k": [1]}, id="b")
        self.store.prune(Retention(last=1))

        assert chat.extend({"m": [21], "k": [1]}, id="b").id == first.id
        with raises(Conflict, "id_taken"):
            chat.extend({"m": [1], "k": [1]}, id="b")
        assert chat.load() == {"m": [5, 21], "k": [0, 1]}
