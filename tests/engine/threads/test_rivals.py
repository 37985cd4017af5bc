"""Reads and moves between whose calls a rival changes or removes the thread."""

from __future__ import annotations

import pytest

from holdfast import NotFound, Retention
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
