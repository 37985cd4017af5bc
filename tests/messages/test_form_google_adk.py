"""Events of Google's ADK, as its adapter stores them, are read as messages."""

import pytest

from holdfast.operations.transcripts import answers_of, calls_of
from inner.messages import read_google_adk, role_of, text_of


def event(author, *parts, role=None, **more):
    content = {"parts": list(parts), **({"role": role} if role else {})}
    return {
        "content": content,
        "invocation_id": "e-1",
        "author": author,
        "actions": {"state_delta": {}, "artifact_delta": {}},
        "id": "x",
        "timestamp": 1.5,
        **more,
    }


def changing(**actions):
    return {"invocation_id": "e-1", "author": "user", "actions": actions, "id": "x"}


BIG = 2**70  # more than the fast encoder takes
CALL = {"function_call": {"id": "c1", "name": "pay", "args": {"to": "Bob"}}}


def result(response):
    return {"function_response": {"id": "c1", "name": "pay", "response": response}}


@pytest.mark.parametrize(
    ("message", "role", "text"),
    [
        (event("user", {"text": "hi"}, role="user"), "user", "hi"),
        (event("guide", {"text": "ho"}, role="model"), "assistant", "ho"),
        (event("guide", {"text": "ho"}), "assistant", "ho"),
        (event("user", {"text": "hi"}), "user", "hi"),
        (event("guide", {"text": "hm", "thought": True}), "assistant", ""),
        (event("guide", CALL, role="model"), "assistant", ""),
        (event("guide", result({"result": "paid"}), role="user"), "tool", "paid"),
        (event("guide", result({"n": 1}), role="user"), "tool", '{"n":1}'),
        (
            event("guide", result({"n": BIG}), role="user"),
            "tool",
            str({"n": BIG}),
        ),
        (event("guide", {"executable_code": {"code": "1+1"}}), "assistant", "1+1"),
        (event("g", {"code_execution_result": {"output": "2"}}), "assistant", "2"),
        (event("guide", error_message="over quota"), "assistant", "over quota"),
        (changing(state_delta={"n": 1, "z": None}), "user", "state changed: n, z"),
        (
            changing(rewind_before_invocation_id="e-7", state_delta={}),
            "user",
            "rewound to before e-7",
        ),
        (changing(end_of_agent=True), "user", "the agent has ended"),
        (
            changing(compaction={"compacted_content": {"parts": [{"text": "so far"}]}}),
            "user",
            "so far",
        ),
    ],
)
def test_an_event_has_the_role_and_text_that_a_person_sees(message, role, text):
    assert (role_of(message), text_of(message)) == (role, text)


def test_calls_and_their_results_belong_together():
    [call] = calls_of(event("guide", {"text": "so"}, CALL, role="model"), 3)

    assert (call.id, call.name, call.arguments) == ("c1", "pay", {"to": "Bob"})
    assert call.position == 3
    assert answers_of(event("guide", result({"n": 1}), role="user")) == ["c1"]


def test_files_are_pictures_or_documents():
    picture = {"inline_data": {"mime_type": "image/png", "data": "AA=="}}
    other = {"file_data": {"mime_type": "text/csv", "file_uri": "gs://b/x"}}

    blocks = read_google_adk(event("user", picture, other, role="user"))["content"]

    assert [block["type"] for block in blocks] == ["image", "document"]
    assert blocks[0]["source"]["data"] == "AA=="
    assert blocks[1]["source"] == {"type": "url", "url": "gs://b/x"}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}], "author": "x"},
        {"author": "x", "content": "a comment"},
        {"author": "x"},
        {"author": "x", "content": {"text": "no parts"}},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {},
    ],
)
def test_any_other_message_is_left_alone(message):
    assert read_google_adk(message) is None


def test_nothing_raises_on_parts_of_any_shape():
    deep = []
    for _ in range(5000):
        deep = [deep]
    shapes = [None, 1, "x", [], {}, {"text": 5}, {"function_call": None}, result(deep)]
    shapes += [{"function_response": 7}, {"inline_data": "x"}, {3: 4}]

    for parts in (shapes, None, 5, "x"):
        message = {"author": 1, "content": {"parts": parts, "role": 3}}
        assert role_of(message) == "3"
        text_of(message)
        calls_of(message)
