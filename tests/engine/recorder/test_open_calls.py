"""Calls that a killed process left open, and a loop that goes on."""

import pytest

from holdfast.strategy import never
from support.recorders import HI, Tool, asking, recorder, stored_of
from support.transcripts import DIALECTS, problems


def killed(store, dialect, *ids):
    """A conversation whose process died within the first of some calls."""
    told = recorder(store, save=never())
    told.add(HI)
    told.llm_response(asking(dialect, *ids))
    with pytest.raises(KeyboardInterrupt):
        told.call(ids[0], Tool(KeyboardInterrupt()))


def results(dialect, *ids):
    """The messages with the results of calls."""
    told = asking(dialect, *ids)
    if dialect == "anthropic":
        blocks = [{"type": "tool_result", "tool_use_id": i, "content": i} for i in ids]
        return [{"role": "user", "content": blocks}]
    if "responses" in dialect:
        kind = "function_call_output"
        return [{"type": kind, "call_id": id_, "output": id_} for id_ in ids]
    mark = {"holdfast": told[0]["holdfast"]} if "holdfast" in told[0] else {}
    return [{**mark, "role": "tool", "tool_call_id": i, "content": i} for i in ids]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_results_and_what_follows_can_be_added_at_once(memory, dialect):
    killed(memory, dialect, "a", "b")
    told = recorder(memory)

    told.add(*results(dialect, "a", "b"), HI)

    assert problems(stored_of(told)) == []
    assert "was not made" not in str(stored_of(told))
    assert recorder(memory).messages == told.messages


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_id_used_again_after_an_interrupted_call_is_open(memory, dialect):
    killed(memory, dialect, "call_0")
    told = recorder(memory)
    told.llm_response(asking(dialect, "call_0"))

    assert [call.id for call in told.open_calls] == ["call_0"]
    assert str(told.messages).count("may or may not") == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_id_used_again_after_a_result_was_given_is_open(memory, dialect):
    killed(memory, dialect, "call_0")
    told = recorder(memory)
    told.tool_result(*results(dialect, "call_0"))
    told.llm_response(asking(dialect, "call_0"))

    assert [call.id for call in told.open_calls] == ["call_0"]
    assert "may or may not" not in str(told.messages)


def test_results_of_anthropic_stand_before_other_parts(memory):
    killed(memory, "anthropic", "a", "b")
    told = recorder(memory)
    [message] = results("anthropic", "b")
    message["content"].append({"type": "text", "text": "So?"})
    told.add(message)

    told.llm_response({"role": "assistant", "content": "Done."})

    assert problems(stored_of(told)) == []
    kinds = [part["type"] for part in told.messages[2]["content"]]
    assert kinds == ["tool_result", "tool_result", "text"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_old_placeholder_is_not_that_of_a_new_call_with_its_id(memory, dialect):
    killed(memory, dialect, "call_0")
    told = recorder(memory)
    told.llm_response(asking(dialect, "call_0"))
    told.tool_result("call_0", "by hand")

    assert told.resolve("call_0", "resolved") == "resolved"

    assert str(stored_of(told)).count("may or may not") == 1
    assert "resolved" not in str(stored_of(told))
