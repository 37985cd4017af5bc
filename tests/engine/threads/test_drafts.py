"""What a save makes of the state before it, and when it repeats an earlier save."""

from __future__ import annotations

from holdfast import Unstorable
from holdfast.testing import raises


def test_lists_are_extended_by_names_that_are_text(memory):
    chat = memory.thread("chat")

    with raises(Unstorable) as raised:
        chat.extend({1: ["element"]})

    assert "has the key 1; keys must be text" in str(raised.error)
    assert chat.head is None
