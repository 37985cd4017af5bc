"""A tool that takes nothing can be called in every dialect."""

import pytest

from holdfast import Message, ToolCall
from holdfast.operations.transcripts import decoded
from support.recorders import recorder

NOTHING = [{}, {"arguments": None}, {"arguments": ""}, {"arguments": " "}]
GIVEN = [*NOTHING, {"arguments": "null"}, {"arguments": "{}"}, {"arguments": {}}]


def chat(given):
    function = {"name": "now", **given}
    call = {"id": "a", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def responses(given):
    return {"type": "function_call", "call_id": "a", "name": "now", **given}


def anthropic(given):
    use = {"type": "tool_use", "id": "a", "name": "now"}
    if given:
        use["input"] = given["arguments"]
    return {"role": "assistant", "content": [use]}


def ours(given):
    return Message.assistant(tool_calls=[ToolCall(id="a", name="now", **given)])


@pytest.mark.parametrize("given", GIVEN, ids=str)
@pytest.mark.parametrize("reply", [chat, responses, anthropic, ours])
def test_a_call_without_arguments_runs(memory, reply, given):
    run = recorder(memory)
    run.llm_response(reply(given))

    [call] = run.open_calls
    run.tool_result(call, run.call(call, lambda: "noon"))

    assert call.arguments == {}
    assert run.open_calls == []


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_a_call_without_arguments_can_be_passed_as_a_record_or_an_entry(memory, given):
    record = ToolCall(id="a", name="now", **given)
    entry = chat(given)["tool_calls"][0] | {"id": "b"}
    run = recorder(memory)

    assert run.call(record, lambda: "noon") == "noon"
    assert run.call(entry, lambda: "later") == "later"


@pytest.mark.parametrize(
    ("arguments", "meaning"),
    [("{", "{"), ("5", 5), ('""', ""), ("[]", []), (0, 0), (False, False)],
)
def test_arguments_that_are_something_else_stay_what_they_are(arguments, meaning):
    assert decoded(arguments) == meaning
