"""Undo, redo and references where moves or checkpoints were removed."""

from __future__ import annotations

import pytest

from holdfast import NotFound, Retention
from holdfast.testing import raises

ONLY_HEADS = Retention(last=1, labelled=False, tagged=False, forks=False)


def forked_and_pruned(store):
    """A fork at its first checkpoint, whose moves were all removed with others."""
    chat = store.thread("chat")
    chat.save({"n": 1}, id="first")
    chat.save({"n": 2}, id="second")
    fork = chat.fork("fork")
    fork.rewind("first")
    chat.save({"n": 3}, id="third")
    store.prune(ONLY_HEADS)
    return fork


@pytest.mark.parametrize("move", ["undo", "redo"])
def test_nothing_is_undone_or_redone_where_every_move_was_pruned(move, memory):
    fork = forked_and_pruned(memory)
    assert len(fork.moves()) == 0

    with raises(NotFound) as raised:
        getattr(fork, move)()

    assert f"nothing to {move}" in str(raised.error)
    assert fork.head.id == "first"


def test_a_thread_whose_moves_were_pruned_was_at_its_head(memory):
    fork = forked_and_pruned(memory)

    assert fork.get("@{0}").id == "first"
    with raises(NotFound) as raised:
        fork.get("@{1}")
    assert "has moved its head 0 times" in str(raised.error)


def test_a_fork_whose_fork_point_was_pruned_has_lost_its_upstream(memory):
    fork = forked_and_pruned(memory)

    with raises(NotFound) as raised:
        fork.get("@{upstream}")

    assert "lost the checkpoint 'second'" in str(raised.error)


def test_an_undo_is_not_redone_from_elsewhere_when_the_moves_after_it_are_gone(memory):
    chat = memory.thread("chat")
    for n in range(1, 4):
        chat.save({"n": n}, id=f"id-{n}")
    chat.undo()
    chat.save({"n": 4}, id="aside")
    chat.rewind("id-1")
    chat.delete("aside")
    assert [move.kind for move in chat.moves()][:2] == ["prune", "undo"]

    with raises(NotFound) as raised:
        chat.redo()

    assert "nothing to redo" in str(raised.error)
    assert chat.head.id == "id-1"


@pytest.mark.parametrize(
    ("reference", "code"), [("same-", "ambiguous"), ("theirs", "foreign")]
)
def test_a_reference_that_means_no_own_checkpoint_deletes_none(reference, code, memory):
    chat = memory.thread("chat")
    chat.save({"n": 1}, id="same-1")
    chat.save({"n": 2}, id="same-2")
    chat.fork("fork").save({"n": 3}, id="theirs")

    with raises(NotFound, code):
        chat.delete(reference)

    assert len(chat.tree()) == 3
