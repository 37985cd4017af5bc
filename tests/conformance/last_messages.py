"""The last message of each of some checkpoints."""

from __future__ import annotations

from holdfast.testing.conformance.cases import Cases


def _message(number: int, size: int = 10) -> dict[str, object]:
    return {"role": "user", "content": f"{number} " + "x" * size}


class LastMessageTests(Cases):
    """The last message of each checkpoint, without loading whole states."""

    def test_each_checkpoint_has_its_own_last_message(self) -> None:
        chat = self.thread()
        for number in range(12):
            chat.append(messages=[_message(number, 100)])
        chat.fork("other", at="@~3").append(messages=[_message(99)])

        shown = [*chat.history(), *self.thread("other").history(2)]
        found = self.store.last_messages(shown)

        numbers = [*range(11, -1, -1), 99, 8]
        assert [int(str(m["content"]).split()[0]) for m in found] == numbers

    def test_the_last_of_a_long_list_and_of_one_that_was_edited(self) -> None:
        chat = self.thread()
        many = [_message(number, 3000) for number in range(40)]
        chat.save({"messages": many, "other": "y" * 5000})
        chat.save({"messages": [*many[:20], _message(77), *many[30:39]], "other": "z"})
        chat.save({"messages": [*many[:5], _message(55, 9000)]})

        found = self.store.last_messages(list(chat.history()))

        assert found == [_message(55, 9000), many[38], many[39]]

    def test_what_holds_no_messages_has_no_last_one(self) -> None:
        chat = self.thread()
        states: list[object] = [
            {},
            {"messages": []},
            {"messages": "hello " * 200},
            {"messages": {"a": "b" * 500}},
            {"messages": None},
            ["messages"],
            7,
        ]
        for state in states:
            chat.save(state)

        found = self.store.last_messages(list(chat.history()))

        assert found == [None] * len(states)

    def test_a_message_may_be_anything(self) -> None:
        chat = self.thread()
        chat.save({"messages": [b"\0", ("a", 1)]})

        assert self.store.last_messages([chat.get()]) == [("a", 1)]

    def test_what_was_removed_since_has_none(self) -> None:
        chat = self.thread()
        chat.append(messages=[_message(1, 9000)])
        chat.append(messages=[_message(2, 9000)])
        first, second = chat.history(order="oldest")
        chat.rewind(first, hard=True)

        assert self.store.last_messages([second, first]) == [None, _message(1, 9000)]

    def test_of_nothing_there_is_nothing(self) -> None:
        assert self.store.last_messages([]) == []
