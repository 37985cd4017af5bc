"""Reads and moves between whose calls a rival changes or removes the thread."""

from __future__ import annotations

import pytest

from holdfast import Conflict, NotFound, Retention
from holdfast.testing import raises
from support.rivals import beside
from support.samples import LONG

LATEST = Retention(last=1)


def about(text):
    """Metadata that is stored apart from the checkpoint."""
    return {"about": f"{text} {LONG}"}


def test_a_thread_deleted_after_its_head_moved_is_not_rewound(memory):
    chat = memory.thread("chat")
    chat.save({"n": 1})
    chat.save({"n": 2})
    rivals = {
        ("commit", 1): lambda: chat.save({"n": 3}),
        ("read", 2): chat.delete,
    }

    with raises(NotFound) as raised:
        beside(memory, rivals).thread("chat").rewind("@1")

    assert "thread 'chat' does not exist" in str(raised.error)
    assert chat.about is None


def test_a_load_finds_what_a_reference_means_after_its_checkpoint_is_removed(memory):
    chat = memory.thread("chat")
    chat.save({"text": f"first {LONG}"})
    second = chat.save({"text": f"second {LONG[::-1]}"})
    chat.save({"text": f"third {LONG.upper()}"})
    rivals = {("segments", 1): lambda: chat.delete(second)}

    loaded = beside(memory, rivals).thread("chat").load("@~1")

    assert loaded == {"text": f"first {LONG}"}


def test_a_document_deleted_while_documents_are_listed_is_left_out(memory):
    memory.documents.save("kept", "text", metadata={"k": 1})
    memory.documents.save("gone", "text", metadata=about("gone"))
    rivals = {("segments", 1): lambda: memory.documents.delete("gone")}

    listed = beside(memory, rivals).documents.list()

    assert [document.name for document in listed] == ["kept"]


def test_a_document_replaced_while_documents_are_listed_is_listed_as_it_is(memory):
    memory.documents.save("note", "text", metadata=about("old"))

    def replace():
        memory.documents.save("note", "text", metadata={"about": "new"})
        memory.prune(LATEST)

    [listed] = beside(memory, {("segments", 1): replace}).documents.list()

    assert (listed.version, listed.metadata) == (2, {"about": "new"})


@pytest.mark.parametrize("mark", ["label", "tag"])
def test_a_checkpoint_removed_while_it_is_marked_is_not_found(mark, memory):
    chat = memory.thread("chat")
    chat.save({"n": 1})
    marked = chat.save({"n": 2})
    chat.save({"n": 3})
    rivals = {("read", 3): lambda: chat.delete(marked)}
    late = beside(memory, rivals).thread("chat")

    with raises(NotFound) as raised:
        getattr(late, mark)("x", ref=marked.id)

    assert f"has no checkpoint {marked.id!r}" in str(raised.error)
    assert chat.find(label="x") is chat.find(tag="x") is None


def test_a_transaction_is_planned_again_as_a_whole(memory):
    """Planning extends bytes in memory, also those of threads that did not move."""
    for name in "ab":
        memory.thread(name).append(list=[LONG])
    store = beside(memory, {("commit", 1): lambda: memory.thread("b").append(list=[1])})
    store.thread("a").load()

    with store.transaction() as tx:
        tx.thread("a").extend({"list": ["ours"]})
        tx.thread("b").extend({"list": ["ours"]})

    assert store.thread("a").load() == memory.thread("a").load()
    assert memory.thread("a").load() == {"list": [LONG, "ours"]}
    assert memory.thread("b").load() == {"list": [LONG, 1, "ours"]}
    assert memory.verify().ok


def test_a_key_recorded_after_the_plan_refuses_the_save(memory):
    chat = memory.thread("chat")
    chat.append(list=[LONG])
    store = beside(memory, {("commit", 1): lambda: chat.record("id", "theirs")})

    with raises(Conflict, "entry_taken"):
        store.thread("chat").extend({"list": ["ours"]}, once={"id": "ours"})

    assert store.thread("chat").load() == {"list": [LONG]}
    assert chat.recorded("id") == "theirs"


def test_a_thread_saved_to_after_it_was_looked_up_is_not_deleted(memory):
    chat = memory.thread("chat")
    head = chat.save({"n": 1})
    store = beside(memory, {("prune", 1): lambda: chat.save({"n": 2})})

    with raises(Conflict, "head_moved"):
        store.thread("chat").delete(expect=head)

    assert chat.load() == {"n": 2}


def test_a_recorded_value_is_no_reason_to_keep_an_expected_head(memory):
    chat = memory.thread("chat")
    head = chat.save({"n": 1})
    store = beside(memory, {("prune", 1): lambda: chat.record("k", 1)})

    assert store.thread("chat").delete(expect=head) == 1


@pytest.mark.parametrize("read", ["tail", "elements", "values"])
def test_a_part_is_read_of_what_a_reference_means_after_a_removal(memory, read):
    chat = memory.thread("chat")
    chat.save({"list": [f"first {LONG}"]})
    second = chat.save({"list": [f"second {LONG[::-1]}"]})
    chat.save({"list": [f"third {LONG.upper()}"]})
    thread = beside(memory, {("segments", 1): lambda: chat.delete(second)}).thread(
        "chat"
    )

    reads = {
        "tail": lambda: thread.tail("list", 1, ref="@~1"),
        "elements": lambda: list(thread.elements("list", ref="@~1")),
        "values": lambda: thread.values("list", ref="@~1")["list"],
    }

    assert reads[read]() == [f"first {LONG}"]
