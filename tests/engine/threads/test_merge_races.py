"""A merge beside other writers."""

import holdfast
from holdfast.testing import raises


def test_a_merge_is_refused_if_the_head_moved_while_it_was_decided(path):
    with holdfast.open(path) as store, holdfast.open(path) as other:
        chat = store.thread("chat")
        chat.save({"plan": "a"})
        fork = chat.fork("fork")
        chat.save({"plan": "b"})
        fork.save({"plan": "c"})

        def decide(conflict):
            other.thread("chat").amend(values={"more": 1})
            return "d"

        with raises(holdfast.Conflict, "head_moved"):
            chat.merge(fork, resolve=decide)

        assert chat.load() == {"plan": "b", "more": 1}


def test_lines_that_parted_long_ago_are_merged(path):
    with holdfast.open(path, durability="normal") as store:
        chat = store.thread("chat")
        chat.save({"plan": "a"})
        fork = chat.fork("fork")
        for n in range(230):  # more than one page of either line
            chat.amend(values={"ours": n})
            fork.amend(values={"theirs": n})

        chat.merge(fork)
        fork.amend(values={"theirs": "last"})
        chat.merge(fork)

        assert chat.load() == {"plan": "a", "ours": 229, "theirs": "last"}
