"""Messages of Pydantic AI as views, search and the list of calls read them."""

import pytest

from holdfast.operations.transcripts import answers_of, calls_of
from inner.messages import plain_form, role_of, text_of

ASKED = {
    "parts": [
        {"content": "be kind", "part_kind": "system-prompt"},
        {
            "content": [
                "what is this?",
                {"data": "eA==", "media_type": "image/png", "kind": "binary"},
                {"content": "my label", "kind": "text-content"},
            ],
            "part_kind": "user-prompt",
        },
    ],
    "instructions": None,
    "kind": "request",
    "state": "complete",
}
CALLED = {
    "parts": [
        {"content": "a cat, I think", "part_kind": "thinking"},
        {"content": "Let me look", "part_kind": "text"},
        {
            "tool_name": "look",
            "args": '{"at":"cat"}',
            "tool_call_id": "call-1",
            "part_kind": "tool-call",
        },
    ],
    "usage": {"input_tokens": 53},
    "model_name": "test",
    "kind": "response",
}
ANSWERED = {
    "parts": [
        {
            "tool_name": "look",
            "content": {"found": ["cat"]},
            "tool_call_id": "call-1",
            "part_kind": "tool-return",
        },
        {
            "tool_name": "look",
            "content": "no such thing",
            "tool_call_id": "call-2",
            "part_kind": "retry-prompt",
        },
    ],
    "kind": "request",
}


def entry(message):
    return {"id": "e2", "parent_id": "e1", "message": message, "kind": "message"}


@pytest.mark.parametrize("stored", [lambda message: message, entry])
def test_messages_and_entries_are_read(stored):
    asked, called, answered = map(stored, (ASKED, CALLED, ANSWERED))

    assert [role_of(m) for m in (asked, called, answered)] == [
        "user",
        "assistant",
        "tool",
    ]
    assert text_of(asked) == "be kind\nwhat is this?\nmy label"
    assert text_of(called) == "Let me look"
    assert text_of(answered) == '{"found": ["cat"]}\nno such thing'
    [call] = calls_of(called)
    assert (call.id, call.name, call.arguments) == ("call-1", "look", {"at": "cat"})
    assert answers_of(answered) == ["call-1", "call-2"]


def test_a_request_with_nothing_but_a_system_prompt_is_the_system():
    prompt = {"content": "be kind", "part_kind": "system-prompt"}

    assert role_of({"parts": [prompt], "kind": "request"}) == "system"


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "message"},
        {"kind": "message", "message": "hi"},
        {"kind": "request", "parts": "hi"},
        {"kind": ["request"], "parts": []},
        {"kind": 1, "parts": None},
        {"role": "user", "parts": [{"text": "of another framework"}]},
    ],
)
def test_messages_of_others_stay_as_they_are(message):
    assert plain_form(message) is message


def test_parts_of_any_shape_are_passed_over():
    odd = [1, None, {}, {"part_kind": 3}, {"part_kind": "new"}, {"part_kind": "text"}]

    assert text_of({"kind": "response", "parts": odd}) == ""
