"""Steps of smolagents come back from the messages of the recipe."""

import pytest
from smolagents import (
    ActionStep,
    AgentError,
    ChatMessage,
    LogLevel,
    PlanningStep,
    TaskStep,
    Timing,
)
from smolagents.memory import ToolCall
from smolagents.monitoring import AgentLogger

import holdfast
from support.pages import BLOCK, page_of

LOGGER = AgentLogger(level=LogLevel.OFF)
CALL = ToolCall("book", {"train": "9:14"}, "c1")
REPLY = ChatMessage(role="assistant", content="first find a train")
STEPS = [
    TaskStep("Get me to Lyon"),
    PlanningStep([], REPLY, "first find a train", Timing(1.0, 2.0)),
    ActionStep(1, Timing(1.0), tool_calls=[CALL], error=AgentError("sold out", LOGGER)),
    ActionStep(
        2,
        Timing(1.0),
        model_output="Thought: print(1)",
        code_action="print(1)",
        observations="1",
        action_output={"a": 1},
        is_final_answer=True,
    ),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_a_step_that_was_stored_says_the_same_to_the_model(step):
    recipe = {}
    exec(BLOCK.findall(page_of("smolagents").read_text())[0][0], recipe)

    with holdfast.open(":memory:") as store:
        store.thread("t").append(messages=list(recipe["messages_of"](step)))
        stored = store.thread("t").load()["messages"][0]["step"]

    restored = recipe["step_of"](stored, LOGGER)
    assert type(restored) is type(step)
    said, before = restored.to_messages(), step.to_messages()
    assert [m.content for m in said] == [m.content for m in before]
