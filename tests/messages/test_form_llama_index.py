"""The messages of LlamaIndex are read like any others."""

import pytest

from holdfast.operations.transcripts import answers_of, calls_of
from inner.messages import read_llama_index, role_of, text_of


def message(role, *blocks, **more):
    """A message as ``ChatMessage.model_dump(mode="json")`` gives it."""
    return {"role": role, "additional_kwargs": more, "blocks": list(blocks)}


def text(words):
    return {"block_type": "text", "text": words}


CALL = {
    "block_type": "tool_call",
    "tool_call_id": "c1",
    "tool_name": "refund",
    "tool_kwargs": {"order": 7},
}


def test_role_and_text_are_those_of_the_message():
    thought = {"block_type": "thinking", "content": "hm"}
    asked = message("model", thought, text("one"), text("two"))

    assert role_of(asked) == "assistant"
    assert text_of(asked) == "one\ntwo"


def test_calls_and_their_answers_are_found():
    [call] = calls_of(message("assistant", CALL))
    answer = message("tool", text("done"), tool_call_id="c1")

    assert (call.id, call.name, call.arguments) == ("c1", "refund", {"order": 7})
    assert list(answers_of(answer)) == ["c1"]
    assert text_of(answer) == "done"


@pytest.mark.parametrize(
    "other",
    [
        {"role": "user", "content": "hi"},
        {"role": "user", "blocks": []},
        {},
    ],
)
def test_other_messages_are_left_to_others(other):
    assert read_llama_index(other) is None


def test_blocks_of_any_shape_are_read_without_an_error():
    odd = message(None, 1, None, {"block_type": 3}, {**CALL, "tool_kwargs": None})

    assert text_of(odd) == ""
    assert role_of(odd) == ""
    assert len(list(calls_of({**odd, "blocks": [{"block_type": "tool_call"}]}))) <= 1
    assert text_of({"blocks": 1, "additional_kwargs": None}) == ""
