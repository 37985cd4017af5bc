"""Parts of a state: changed and read without the rest of it."""

from __future__ import annotations

from holdfast.errors import Conflict, FormatMismatch, NotFound, Unstorable
from holdfast.testing import raises
from holdfast.testing.conformance.cases import LONG, Cases, untyped


class AmendTests(Cases):
    """``amend``: append, set and remove in one save."""

    def test_lists_grow_and_values_change_in_one_save(self) -> None:
        chat = self.thread()
        chat.save({"list": [LONG], "n": 1, "text": LONG, "old": 1})

        saved = chat.amend(
            lists={"list": ["a"], "new": (1, 2)},
            values={"n": 2, "text": f"{LONG} more", "set": {3}},
            remove=["old", "nothing"],
            label="amended",
        )

        assert (saved.step, saved.label) == (2, "amended")
        assert chat.load() == self.rival().thread("chat").load()
        assert chat.load() == {
            "list": [LONG, "a"],
            "n": 2,
            "text": f"{LONG} more",
            "new": [1, 2],
            "set": {3},
        }

    def test_amend_begins_a_thread(self) -> None:
        self.store.thread("chat", owner="ann").amend(values={"n": 1}, expect=None)

        about = self.thread().about
        assert about is not None
        assert (about.owner, self.thread().load()) == ("ann", {"n": 1})

    def test_an_amend_follows_other_writers(self) -> None:
        chat, rival = self.thread(), self.rival().thread("chat")
        chat.append(list=[LONG])
        rival.append(list=["theirs"])

        chat.amend(lists={"list": ["ours"]}, values={"n": 1})

        assert rival.load() == {"list": [LONG, "theirs", "ours"], "n": 1}

    def test_a_repeated_amend_is_made_once(self) -> None:
        chat = self.thread()
        chat.append(list=["a"])
        for _ in range(2):
            chat.amend(lists={"list": ["b"]}, values={"n": 1}, id="one")

        assert (chat.step, chat.load()) == (2, {"list": ["a", "b"], "n": 1})
        with raises(Conflict, "id_taken"):
            chat.amend(lists={"list": ["c"]}, values={"n": 1}, id="one")

    def test_what_cannot_be_amended_is_refused(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})
        for lists, values, remove in untyped(
            ({"n": ["a"]}, None, ()),
            ({"a": [1]}, {"a": [2]}, ()),
            (None, {"a": 1}, ["a"]),
            (None, None, "n"),
            (None, {1: 1}, ()),
            (None, {"a": print}, ()),
        ):
            with raises(Unstorable):
                chat.amend(lists=lists, values=values, remove=remove)
        assert chat.step == 1

        self.thread("whole").save([1])
        with raises(Unstorable):
            self.thread("whole").amend(values={"n": 1})


class PartTests(Cases):
    """``values``, ``tail`` and ``elements``."""

    def test_some_values_are_read(self) -> None:
        chat = self.thread()
        first = chat.save({"n": 1, "text": LONG, "list": [LONG, 2]})
        chat.save({"n": 2})

        assert chat.values("n", "text", "nothing", ref=first) == {"n": 1, "text": LONG}
        assert chat.values("list", "text", ref=first) == {
            "list": [LONG, 2],
            "text": LONG,
        }
        assert (chat.values("n"), chat.values()) == ({"n": 2}, {})
        with raises(NotFound):
            self.thread("nobody").values("n")

    def test_the_end_of_a_list_is_read(self) -> None:
        chat = self.thread()
        chat.save({"n": 1, "short": [1, 2, 3]})
        for n in range(40):
            chat.append(long=[n, LONG])
        for reader in (chat, self.rival().thread("chat")):
            assert reader.tail("short", 2) == [2, 3]
            assert reader.tail("short", 9) == [1, 2, 3]
            assert reader.tail("long", 3) == [LONG, 39, LONG]
            assert len(reader.tail("long", 500)) == 80
            assert reader.tail("long", 1, ref="@~39") == [LONG]
            assert reader.tail("nothing", 1) == reader.tail("long", 0) == []
        with raises(FormatMismatch):
            chat.tail("n", 1)
        for wrong in untyped(-1, None, "x"):
            with raises(Unstorable):
                chat.tail("short", wrong)

    def test_a_list_is_read_in_pages(self) -> None:
        chat = self.thread()
        chat.save({"list": [f"{n} {LONG}" for n in range(30)]})
        rival = self.rival().thread("chat")
        for n in range(30, 40):
            rival.append(list=[f"{n} {LONG}", "x"])
        whole = rival.load()["list"]
        for reader in (rival, self.open().thread("chat")):
            found, after = [], None
            while page := reader.elements("list", after=after, limit=7):
                assert len(page) <= 7
                found += page
                after = page.cursor

            assert found == whole
            assert tuple(whole) == reader.elements("list", limit=None).items

    def test_a_position_stays_valid_while_a_list_grows(self) -> None:
        """From nothing over a list in the manifest to one of many segments."""
        chat, found = self.thread(), []
        chat.save({"n": 1})
        after = chat.elements("list").cursor
        for n in range(30):
            chat.append(list=[n, str(n) * 9 * n, n])
            page = chat.elements("list", after=after)
            found += page
            after = page.cursor

        assert found == chat.load()["list"]
        assert chat.elements("list", after=after).cursor == after

    def test_an_earlier_edit_leaves_a_position_valid(self) -> None:
        chat = self.thread()
        elements = [f"{n} {LONG}" for n in range(20)]
        chat.save({"list": elements})
        page = chat.elements("list", limit=10)
        chat.save({"list": ["changed", *elements[1:], "new"]})

        rest = chat.elements("list", after=page.cursor, limit=None)

        assert list(rest) == [*elements[10:], "new"]

    def test_a_list_that_was_rewound_is_read_again(self) -> None:
        chat = self.thread()
        for n in range(10):
            chat.append(list=[f"{n} {LONG}"])
        after = chat.elements("list").cursor
        chat.rewind("@~5")
        chat.append(list=["other"])

        with raises(Conflict, "list_changed"):
            chat.elements("list", after=after)

        chat.save({"list": []})
        with raises(Conflict, "list_changed"):
            chat.elements("list", after=after)

    def test_a_position_does_not_mean_a_segment_that_came_in_its_place(self) -> None:
        chat = self.thread()
        for n in range(3):
            chat.append(list=[f"{n} {LONG}"])
        after = chat.elements("list").cursor
        chat.rewind("@^", hard=True)
        chat.append(list=[f"other {LONG}"])

        with raises(Conflict, "list_changed"):
            chat.elements("list", after=after)

    def test_what_is_no_position_is_refused(self) -> None:
        chat = self.thread()
        chat.append(list=[LONG])
        for wrong in untyped(-1, "x", 1 << 80):
            with raises(Unstorable):
                chat.elements("list", after=wrong)

    def test_elements_that_edits_have_cut_are_read(self) -> None:
        """A kept segment may begin or end in the middle of an element."""
        chat = self.thread()
        for state in (
            [LONG],
            [["before", LONG, "after"], 1],
            [{"m": LONG}, 1],
            [{"all": [0, {"m": LONG}, 2]}, 3],
        ):
            chat.save({"list": state})
            reader = self.open().thread("chat")
            found, after = [], None
            while page := reader.elements("list", after=after, limit=1):
                found += page
                after = page.cursor

            assert found == state == reader.tail("list", 9)
