"""Which checkpoint set a value."""

from __future__ import annotations

from holdfast.errors import NotFound, Unstorable
from holdfast.retention import Retention
from holdfast.testing import raises
from holdfast.testing.conformance.cases import LONG, Cases, untyped


class BlameTests(Cases):
    """The checkpoint since which a value has not changed."""

    def _set_by(self, path: str, at: str = "@") -> tuple[int, int | None]:
        """The steps of the checkpoint that set a value and of the one before it."""
        found = self.thread().blame(path, at)
        previous = found.previous
        return found.checkpoint.step, previous.step if previous else None

    def test_blame_finds_the_last_change_of_a_value(self) -> None:
        for n, text in ((1, "a"), (1, LONG), (2, LONG), (2, LONG), (2, "a")):
            self.thread().save({"n": n, "text": text, "same": LONG})

        assert self._set_by("n") == (3, 2)
        assert self._set_by("text") == (5, 4)
        assert self._set_by("same") == (1, None)
        assert self._set_by("text", "@4") == (2, 1)
        assert self.thread().blame("n").value == 2
        assert self.thread().blame("n").path == "n"

    def test_blame_looks_inside_values(self) -> None:
        for total, other in ((1, 1), (1, 2), (5, 3), (5, 4)):
            value = {"total": total, "other": other, "text": LONG}
            self.thread().save({"vars": value, "few": {"a": [total, other]}})

        assert self._set_by("vars.total") == self._set_by("/vars/total") == (3, 2)
        assert self._set_by("few.a[0]") == self._set_by("few.a.0") == (3, 2)
        assert self._set_by("few.a[-1]") == (4, 3)
        assert self._set_by('vars["text"]') == (1, None)

    def test_blame_of_an_element_is_the_append_that_brought_it(self) -> None:
        for n in range(12):
            self.thread().append(messages=[{"content": f"{n} {LONG}"}])

        assert self._set_by("messages[0]") == (1, None)
        assert self._set_by("messages[7].content") == (8, None)
        assert self._set_by("messages[11]") == (12, None)
        assert self.thread().blame("messages[7].content").value == f"7 {LONG}"

    def test_blame_sees_an_edit_amid_a_growing_list(self) -> None:
        chat = self.thread()
        messages = [f"{n} {LONG}" for n in range(6)]
        chat.save({"messages": messages})
        chat.append(messages=["six"])
        state = chat.load()
        state["messages"][3] = "edited"
        chat.save(state)
        chat.append(messages=["seven"])

        assert self._set_by("messages[3]") == (3, 2)
        assert self._set_by("messages[4]") == (1, None)
        assert self._set_by("messages[6]") == (2, None)
        assert chat.blame("messages[3]").value == "edited"

    def test_blame_goes_by_index_where_a_list_lost_its_front(self) -> None:
        messages = [f"{n} {LONG}" for n in range(8)]
        for first in range(3):
            self.thread().save({"messages": messages[first : first + 5]})

        assert self._set_by("messages[4]") == (3, 2)
        assert self.thread().blame("messages[0]").value == f"2 {LONG}"

    def test_blame_is_not_misled_by_a_value_that_came_back(self) -> None:
        for text in (LONG, "other", LONG, LONG):
            self.thread().save({"text": text})

        assert self._set_by("text") == (3, 2)

    def test_blame_does_not_take_equal_values_written_again_for_changes(self) -> None:
        chat = self.thread()
        chat.save({"a": LONG})
        chat.save({"a": LONG, "b": 1})
        chat.save({"b": 1, "a": LONG})

        assert self._set_by("a") == (1, None)
        assert self._set_by("b") == (2, None)

    def test_blame_tells_types_apart(self) -> None:
        for value in (1, 1.0, True, True):
            self.thread().save({"n": value})

        assert self._set_by("n") == (3, 2)

    def test_blame_follows_the_line_through_forks_and_removals(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, label="first")
        for _ in range(3):
            chat.save({"n": 1})
        self.store.prune(Retention(last=1))
        fork = chat.fork("fork")
        fork.save({"n": 1, "m": 1})

        assert fork.blame("n").checkpoint.step == 1
        assert fork.blame("m").checkpoint.step == 5

    def test_blame_of_a_state_that_is_no_mapping(self) -> None:
        for last in (1, 1, 2):
            self.thread().save([LONG, {"n": last}])

        assert self._set_by("[1].n") == self._set_by("/1/n") == (3, 2)
        assert self._set_by("[0]") == (1, None)
        assert self._set_by("") == (3, 2)

    def test_blame_of_the_whole_state(self) -> None:
        for n in (1, 2, 2):
            self.thread().save({"n": n, "text": LONG})

        assert self._set_by("") == (2, 1)
        assert self.thread().blame("").value == {"n": 2, "text": LONG}

    def test_blame_of_what_is_not_there_is_not_found(self) -> None:
        self.thread().save({"n": 1, "list": [1], "text": LONG, "many": [LONG, LONG]})

        for path in ("m", "n.x", "list[1]", "list[-2]", "text[0]", "many[2]", "/"):
            with raises(NotFound):
                self.thread().blame(path)
        with raises(NotFound):
            self.thread("nobody").blame("n")
        for path in untyped("a..b", "a[", "[x]", "a]", None, 1):
            with raises(Unstorable):
                self.thread().blame(path)
