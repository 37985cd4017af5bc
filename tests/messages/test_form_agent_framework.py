"""Messages of the Agent Framework are read like all others."""

import pytest

from holdfast.operations.transcripts import TranscriptCall, answers_of, calls_of
from inner.messages import role_of, text_of


def chat(role, *contents):
    return {"role": role, "contents": list(contents), "__type__": "Message"}


def content(kind, **fields):
    return {"type": kind, **fields, "__type__": "Content"}


def sent(data, source="writer"):
    return {
        "data": data,
        "source_id": source,
        "target_id": None,
        "type": {"value": "standard", "__type__": "MessageType"},
        "__type__": "WorkflowMessage",
    }


HI = chat("assistant", content("text", text="hi"))
CALL = content("function_call", call_id="c", name="pay", arguments='{"to": "ann"}')
RESULT = content("function_result", call_id="c", result={"paid": 3})

READ = [
    (
        chat("user", content("text", text="a"), content("text", text="b")),
        "user",
        "a\nb",
    ),
    (chat("assistant", content("text_reasoning", text="hm")), "assistant", ""),
    (chat("assistant", content("error", message="no")), "assistant", "no"),
    (chat("tool", RESULT), "tool", '{"paid":3}'),
    (chat("user", content("uri", uri="https://x")), "user", ""),
    ({"type": "message", "role": "user", "contents": []}, "user", ""),
    (sent("text"), "writer", "text"),
    (sent(2), "writer", "2"),
    (sent({"n": 1, "__type__": "app.Order"}), "writer", '{"n":1}'),
    (sent(10**30), "writer", "(int)"),
    (sent(HI), "writer", "hi"),
    (sent([HI, HI]), "writer", "hi\nhi"),
    (sent({"messages": [HI], "should_respond": True}, "internal:a"), "user", "hi"),
    (sent({"agent_response": {"messages": [HI]}}), "writer", "hi"),
]


@pytest.mark.parametrize(("message", "role", "text"), READ)
def test_role_and_text(message, role, text):
    assert (role_of(message), text_of(message)) == (role, text)


@pytest.mark.parametrize(
    "message",
    [
        chat("assistant", CALL),
        sent({"agent_response": {"messages": [chat("assistant", CALL)]}}),
    ],
)
def test_calls(message):
    assert calls_of(message) == [TranscriptCall("c", "pay", {"to": "ann"})]


def test_answers():
    assert answers_of(chat("tool", RESULT)) == ["c"]


@pytest.mark.parametrize(
    "message",
    [
        {"role": 1, "contents": []},
        {"role": "user", "contents": [1, None, {"type": 3}, {"type": "text"}]},
        {"source_id": "a", "data": None},
    ],
)
def test_what_is_no_such_message_is_read_without_an_error(message):
    assert isinstance(role_of(message), str)
    assert isinstance(text_of(message), str)
    assert isinstance(calls_of(message), list)
