"""A rewind that depends on the head it was decided at."""

import pytest

import holdfast


def test_a_rewind_from_another_head_than_expected_is_a_conflict(memory):
    thread = memory.thread("chat")
    first = thread.save({"turn": 1})
    second = thread.save({"turn": 2})

    with pytest.raises(holdfast.Conflict) as caught:
        thread.rewind(first, expect=first.id)
    assert caught.value.code == "head_moved"
    assert thread.head == second

    assert thread.rewind(first, expect=second.id) == first
    assert thread.load() == {"turn": 1}
