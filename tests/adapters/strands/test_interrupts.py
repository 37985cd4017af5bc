"""Tools that ask a person: the session waits in the store for the answer."""

import pytest
from strands import tool

from adapters.strands.scripted import agent, said
from adapters.strands.sessions import SESSIONS


@tool(context=True)
def refund(amount: int, tool_context) -> str:
    """Pay money back."""
    answer = tool_context.interrupt("approval", reason={"amount": amount})
    return f"refunded {amount}" if answer == "yes" else "refused"


@pytest.mark.parametrize("kind", SESSIONS)
def test_another_process_gives_the_answer_that_a_tool_waits_for(kind, store):
    first = agent(SESSIONS[kind](store), ("refund", {"amount": 5}), tools=[refund])
    waiting = first("I want my money back")
    assert waiting.stop_reason == "interrupt"
    [asked] = waiting.interrupts

    second = agent(SESSIONS[kind](store), "Done", tools=[refund])
    answer = {"interruptId": asked.id, "response": "yes"}
    ended = second([{"interruptResponse": answer}])

    assert ended.stop_reason == "end_turn"
    texts = ["I want my money back", "refund()", "-> refunded 5", "Done"]
    assert said(second.messages) == texts
    assert said(agent(SESSIONS[kind](store)).messages) == texts
