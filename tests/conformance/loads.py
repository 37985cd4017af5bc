"""Loading a state as a type, and comparing two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import msgspec

from holdfast.agents import Agent
from holdfast.errors import FormatMismatch, NotFound, Unstorable
from holdfast.testing import raises
from holdfast.testing.conformance.cases import LONG, Cases, untyped


@dataclass
class Chat:
    """A state as a dataclass."""

    messages: list[str]
    budget: int = 5


@dataclass
class Chats:
    """A state with typed parts."""

    chats: list[Chat]
    last: Chat


class Message(TypedDict):
    """A part of a state as a TypedDict."""

    role: str
    text: str


class Run(msgspec.Struct):
    """A state as a msgspec struct."""

    messages: list[Message]
    cost: float | None = None


class TypedLoadTests(Cases):
    """``load(type=...)``: a dataclass, a TypedDict, a struct."""

    def test_a_state_is_loaded_as_a_dataclass(self) -> None:
        self.thread().save({"messages": ["hi"]})

        assert self.thread().load(type=Chat) == Chat(["hi"], 5)

    def test_a_state_is_loaded_as_a_typed_dict(self) -> None:
        self.thread().save({"role": "user", "text": LONG})

        loaded = self.thread().load(type=Message)

        assert loaded == {"role": "user", "text": LONG}

    def test_a_state_is_loaded_as_a_struct(self) -> None:
        self.thread().save({"messages": [{"role": "user", "text": "hi"}]})

        run = self.thread().load(type=Run)

        assert run == Run([{"role": "user", "text": "hi"}])

    def test_a_state_is_loaded_as_a_plain_type(self) -> None:
        self.thread().save([1, 2])

        assert self.thread().load(type=list[int]) == [1, 2]
        assert self.thread().load(type=tuple[int, int]) == (1, 2)

    def test_a_state_of_another_type_does_not_fit(self) -> None:
        saved = self.thread().save({"messages": "not a list"})

        with raises(FormatMismatch):
            self.thread().load(type=Chat)
        with raises(FormatMismatch):
            self.store.load(saved, type=Run)
        assert self.thread().load() == {"messages": "not a list"}

    def test_what_is_saved_as_a_type_is_stored_plainly_and_loaded_as_it(self) -> None:
        chat, run = self.thread(), Run([{"role": "user", "text": LONG}], 2)
        first = chat.save(Chat([LONG]))
        second = chat.save(run)

        assert chat.load(first) == {"messages": [LONG], "budget": 5}
        assert chat.load(first, type=Chat) == Chat([LONG])
        assert chat.load() == {"messages": run.messages, "cost": 2}
        assert chat.load(type=Run) == run
        assert chat.save(run, if_changed=True) == second
        assert chat.append(messages=[{"role": "user", "text": "b"}]).step == 3

    def test_typed_objects_are_stored_wherever_a_value_is(self) -> None:
        chat, plain = self.thread(), {"messages": ["a"], "budget": 5}
        chat.save({"chats": [Chat(["a"])], "last": Chat(["a"])})
        chat.append(chats=[Chat(["b"], 1)])
        chat.record("key", Chat(["a"]))

        chats = chat.load(type=Chats)

        assert chats == Chats([Chat(["a"]), Chat(["b"], 1)], Chat(["a"]))
        assert chat.load()["last"] == plain
        assert chat.recorded("key") == plain
        assert len(chat.history(None)) == 2

    def test_typed_objects_are_stored_in_records(self) -> None:
        store, plain = self.store, {"messages": ["a"], "budget": 5}
        store.agents.save(Agent(id="a", state={"chat": Chat(["a"])}))
        store.conversations.create("c", context={"chat": Chat(["a"])})
        store.documents.save("d", [Chat(["a"])], metadata={"chat": Chat(["a"])})

        assert store.agents.load("a").state == {"chat": plain}
        assert store.conversations.load("c").context == {"chat": plain}
        document = store.documents.load("d", type=list[Chat])
        assert (document.content, document.metadata) == (
            [Chat(["a"])], {"chat": plain},
        )  # fmt: skip

    def test_a_typed_object_that_would_come_back_changed_is_refused(self) -> None:
        chat = self.thread()
        for wrong in untyped(Chat("text"), Chat([], "5"), Chats([], Chat([], 1.5))):
            for call in (chat.save, lambda value: chat.append(m=[value])):
                with raises(Unstorable):
                    call(wrong)

        assert chat.head is None

    def test_an_older_state_is_loaded_as_a_type(self) -> None:
        chat = self.thread()
        first = chat.save({"messages": ["a"], "budget": 1})
        chat.save({"messages": ["b"]})

        assert chat.load(first, type=Chat) == Chat(["a"], 1)
        assert self.store.load(first.id, type=Chat) == Chat(["a"], 1)


class DiffTests(Cases):
    """What changed between two checkpoints."""

    def test_a_difference_is_structural(self) -> None:
        chat = self.thread()
        first = chat.save({"m": ["a", LONG], "gone": 1, "budget": 5})
        chat.save({"m": ["a", LONG, "b"], "budget": 4, "new": None})

        diff = chat.diff(first)

        assert {change.path for change in diff.added} == {("m", 2), ("new",)}
        assert {change.path for change in diff.removed} == {("gone",)}
        assert {change.path for change in diff.changed} == {("budget",)}
        assert not chat.diff("@", "@").changes

    def test_checkpoints_of_two_threads_can_be_compared(self) -> None:
        ours = self.thread("a").save({"n": 1})
        theirs = self.thread("b").save({"n": 2})

        [change] = self.thread("a").diff(ours, theirs).changes

        assert (change.path, change.old, change.new) == (("n",), 1, 2)

    def test_loading_an_old_state_does_not_disturb_the_next_save(self) -> None:
        chat = self.thread()
        for n in range(4):
            chat.append(m=[f"{n} {LONG}"])
            chat.load("@")
            chat.load(chat.history(None)[-1])

        assert chat.load() == {"m": [f"{n} {LONG}" for n in range(4)]}

    def test_a_deleted_checkpoint_is_not_compared_with(self) -> None:
        chat = self.thread()
        first = chat.save({"text": "a" * 600})
        gone = chat.save({"text": "b" * 600})
        chat.rewind(first, hard=True)
        chat.save({"text": "c" * 600})

        with raises(NotFound):
            chat.diff(gone)
        with raises(NotFound):
            chat.load(gone)
        with raises(NotFound):
            self.store.load(gone)
