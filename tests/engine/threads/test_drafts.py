"""What a save makes of the state before it, and when it repeats an earlier save."""

from __future__ import annotations

import holdfast
from holdfast import Conflict, Conversation, Message, Retention, Unstorable
from holdfast.testing import ids, raises

HELLO = Message.user("hello")


def test_lists_are_extended_by_names_that_are_text(memory):
    chat = memory.thread("chat")

    with raises(Unstorable) as raised:
        chat.extend({1: ["element"]})

    assert "has the key 1; keys must be text" in str(raised.error)
    assert chat.head is None


def write_records(store):
    """A program that makes the same saves each time it runs."""
    store.documents.save("note", "text", metadata={"k": 1})
    store.conversations.save(Conversation(id="talk", title="first"))
    store.conversations.add("talk", HELLO)
    store.conversations.update("talk", title=None)
    store.conversations.update("talk", title="second")


def checkpoints(store):
    return [
        checkpoint.id
        for thread in store.threads()
        for checkpoint in store.thread(thread.id).history(all=True)
    ]


def test_a_program_that_runs_again_with_the_same_ids_saves_nothing_twice(path, clock):
    def opened():
        return holdfast.open(path, clock=clock, new_id=ids())

    with opened() as store:
        write_records(store)
        before = checkpoints(store)

    with opened() as store:
        write_records(store)

        assert checkpoints(store) == before
        talk = store.conversations.load("talk")
        assert [message.content for message in talk.messages] == ["hello"]
        assert talk.title == "second"
    assert len(before) == 5


def test_an_id_in_use_is_refused_for_a_document_with_another_content(clock):
    with holdfast.open(":memory:", clock=clock, new_id=lambda: "same") as store:
        store.documents.save("note", "text")

        with raises(Conflict, "id_taken"):
            store.documents.save("note", "another text")

        assert store.documents.load("note").content == "text"


def test_a_repeated_document_is_refused_after_the_version_before_it_was_pruned(clock):
    new_id = iter(["first", "second", "second"]).__next__
    with holdfast.open(":memory:", clock=clock, new_id=new_id) as store:
        store.documents.save("note", "text")
        store.documents.save("note", "another text")
        store.prune(Retention(last=1))

        # What it took over from the first version cannot be compared any more.
        with raises(Conflict, "id_taken"):
            store.documents.save("note", "another text")
