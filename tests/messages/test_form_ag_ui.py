"""Messages of AG-UI are read like all others."""

import pytest

from holdfast.operations.transcripts import TranscriptCall, answers_of, calls_of
from inner.messages import role_of, text_of

CALL = {
    "id": "c",
    "type": "function",
    "function": {"name": "pay", "arguments": '{"to": "ann"}'},
}
ASKING = {"id": "1", "role": "assistant", "content": "so", "toolCalls": [CALL]}
ANSWER = {"id": "2", "role": "tool", "toolCallId": "c", "content": "paid"}


@pytest.mark.parametrize(
    ("message", "role", "text"),
    [
        ({"id": "0", "role": "user", "content": "hi"}, "user", "hi"),
        (ASKING, "assistant", "so"),
        (ANSWER, "tool", "paid"),
        ({"id": "3", "role": "reasoning", "content": "hm"}, "assistant", ""),
    ],
)
def test_role_and_text(message, role, text):
    assert (role_of(message), text_of(message)) == (role, text)


def test_calls_and_answers():
    silent = {"id": "1", "role": "assistant", "toolCalls": [CALL]}
    for message in (ASKING, silent):
        assert calls_of(message) == [TranscriptCall("c", "pay", {"to": "ann"})]
    assert answers_of(ANSWER) == ["c"]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "toolCalls": [1, {"function": 2}]},
        {"role": "tool", "toolCallId": 3},
        {"role": "reasoning", "content": None, "id": "1"},
    ],
)
def test_what_is_no_such_message_is_read_without_an_error(message):
    assert isinstance(role_of(message), str)
    assert isinstance(text_of(message), str)
    assert isinstance(calls_of(message), list)
