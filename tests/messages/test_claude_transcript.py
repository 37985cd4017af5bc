"""The stored form of Claude's transcripts: messages apart from bookkeeping."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.operations.claude import MESSAGES, apart, together

KINDS = st.sampled_from(["user", "assistant", "system", "custom-title", "mode", None])
BATCHES = st.lists(st.lists(KINDS, max_size=5), max_size=6)


@given(BATCHES)
def test_entries_come_back_in_the_order_in_which_they_were_appended(batches):
    numbers = iter(range(100))
    entries = [[{"type": kind, "n": next(numbers)} for kind in b] for b in batches]
    state = {}

    for batch in entries:
        lists = apart(batch, len(state.get(MESSAGES, [])))
        state = {name: state.get(name, []) + lists[name] for name in lists}

    assert together(state) == [entry for batch in entries for entry in batch]


def test_messages_are_what_people_read():
    entries = [
        {"type": "user", "message": {"role": "user", "content": "hi"}},
        {"type": "system", "content": "Conversation compacted"},
        {"type": "system", "subtype": "turn_duration", "durationMs": 7},
        {"type": "file-history-snapshot", "snapshot": {}},
        {"type": ["user"]},
    ]

    assert apart(entries, 0)[MESSAGES] == entries[:2]
