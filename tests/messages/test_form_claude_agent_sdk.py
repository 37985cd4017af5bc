"""Entries of the Claude Agent SDK, read as the messages that they hold."""

import pytest

from holdfast.operations.transcripts import answers_of, calls_of
from inner.messages import plain_form, role_of, text_of

ABOUT = {"sessionId": "s1", "parentUuid": None, "isSidechain": False, "cwd": "/w"}
ASKED = {
    **ABOUT,
    "type": "user",
    "uuid": "u1",
    "timestamp": "2026-11-16T10:00:00.000Z",
    "message": {"role": "user", "content": "Refund order 7"},
}
CALLED = {
    **ABOUT,
    "type": "assistant",
    "uuid": "u2",
    "requestId": "req_1",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-7",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "text", "text": "I look it up."},
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"n": 7}},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 9},
    },
}
ANSWERED = {
    **ABOUT,
    "type": "user",
    "uuid": "u3",
    "toolUseResult": {"stdout": "paid"},
    "message": {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "paid"}
        ],
    },
}


def test_an_entry_is_read_as_the_message_in_it():
    assert (role_of(ASKED), text_of(ASKED)) == ("user", "Refund order 7")
    assert (role_of(CALLED), text_of(CALLED)) == ("assistant", "I look it up.")
    [call] = calls_of(CALLED, 4)
    assert (call.id, call.name, call.arguments) == ("toolu_1", "Read", {"n": 7})
    assert (role_of(ANSWERED), text_of(ANSWERED)) == ("tool", "paid")
    assert answers_of(ANSWERED) == ["toolu_1"]
    assert plain_form(ASKED)["timestamp"] == "2026-11-16T10:00:00.000Z"


def test_what_claude_says_of_itself_is_a_system_message():
    notice = {**ABOUT, "type": "system", "subtype": "x", "content": "Compacted"}

    assert (role_of(notice), text_of(notice)) == ("system", "Compacted")
    assert calls_of(notice) == answers_of(notice) == []


@pytest.mark.parametrize(
    "message",
    [
        {"type": "message", "role": "user", "content": [], "sessionId": "s1"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "user", "content": "hi"},
        {"type": "user", "message": "hi"},
        {"type": "system", "content": "hi"},
        {"type": "custom-title", "customTitle": "hi", "sessionId": "s1"},
        {"type": ["user"], "sessionId": "s1"},
        {"type": "human", "data": {"content": "hi"}},
        {"message": {"role": "user", "content": "hi"}},
        "hi",
        None,
    ],
)
def test_other_messages_are_left_as_they_are(message):
    assert plain_form(message) is message
