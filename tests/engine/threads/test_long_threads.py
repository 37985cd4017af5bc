"""Threads with more checkpoints than one page of a scan has."""

from __future__ import annotations

from holdfast import NotFound
from holdfast.testing import raises

MORE_THAN_A_PAGE = 205


def test_blame_finds_a_value_set_more_than_a_page_of_checkpoints_ago(memory):
    chat = memory.thread("chat")
    first = chat.save({"goal": "find it", "n": 0})
    for n in range(MORE_THAN_A_PAGE):
        chat.save({"goal": "find it", "n": n})

    found = chat.blame("goal")

    assert (found.checkpoint.id, found.previous) == (first.id, None)


def test_blame_reads_a_list_whose_segments_do_not_hold_whole_elements(memory):
    long = "x" * 9000
    chat = memory.thread("chat")
    chat.save({"log": [long]})
    nested = chat.save({"log": [[0, long, 5], "end"]})
    chat.append(log=["a", "b", "c"])

    found = chat.blame("log[1]")

    assert (found.value, found.checkpoint.id) == ("end", nested.id)


def test_an_ambiguous_beginning_of_a_page_of_ids_names_ten_of_them(memory):
    chat = memory.thread("chat")
    for n in range(MORE_THAN_A_PAGE):
        chat.save({"n": n}, id=f"same-{n:03}")

    with raises(NotFound, "ambiguous") as raised:
        chat.load("same-")

    assert "same-009, ...; give more of the id" in str(raised.error)


def test_an_id_is_found_behind_a_page_of_ids_that_the_thread_cannot_see(memory):
    chat = memory.thread("chat")
    chat.save({"n": 0}, id="root")
    fork = chat.fork("fork")
    for n in range(MORE_THAN_A_PAGE):
        chat.save({"n": n}, id=f"same-{n:03}")
    fork.save({"n": "fork"}, id="same-of-the-fork")

    assert fork.load("same-") == {"n": "fork"}


def test_a_tag_is_found_behind_a_page_of_tags_that_the_thread_cannot_see(memory):
    chat = memory.thread("chat")
    chat.save({"n": "root"})
    fork = chat.fork("fork")
    fork.save({"n": "fork"}, tags=["t"])
    for n in range(MORE_THAN_A_PAGE):
        chat.save({"n": n}, tags=["t"])

    assert fork.load("tag:t") == {"n": "fork"}


def test_a_history_after_an_unknown_cursor_is_not_found(memory):
    chat = memory.thread("chat")
    chat.save({"n": 1})

    with raises(NotFound) as raised:
        chat.history(before=999)

    assert "has no checkpoint 'cursor 999'" in str(raised.error)


def test_a_tree_without_a_limit_has_every_checkpoint_of_the_family(memory):
    chat = memory.thread("chat")
    saved = [chat.save({"n": n}).id for n in range(MORE_THAN_A_PAGE)]
    forked = chat.fork("fork").save({"n": "fork"}).id

    page = chat.tree(limit=None)

    assert [checkpoint.id for checkpoint in page] == [forked, *reversed(saved)]
    assert page.cursor is None
