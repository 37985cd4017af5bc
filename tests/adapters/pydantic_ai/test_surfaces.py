"""What the command line shows of conversations and runs: messages and steps."""

import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.models.test import TestModel

import holdfast
from holdfast.adapters.pydantic_ai import (
    HoldfastConversationStore,
    HoldfastDurability,
)
from holdfast.cli import main


@pytest.fixture
def shown(tmp_path, capsys):
    """What a command prints about a store with a conversation and a run."""
    path = str(tmp_path / "agents.db")

    @holdfast.once
    def book(seat: str) -> dict[str, int]:
        return {"platform": 4}

    async def talk():
        durability = HoldfastDurability(path)
        agent = Agent(
            TestModel(custom_output_text="leaves at nine"),
            name="guide",
            tools=[book],
            capabilities=[durability],
        )
        async with HoldfastConversationStore(path) as store, durability.run("r"):
            begun = Conversation(conversation_id="c")
            await store.save(await agent.run("find a train", conversation=begun))
        await durability.close()

    asyncio.run(talk())

    def run(*arguments):
        assert main(["--store", path, *arguments]) == 0
        return capsys.readouterr().out

    return run


def test_a_conversation_is_shown_as_messages(shown):
    assert "assistant: leaves at nine" in shown("log", "pydantic_ai:c")
    assert "find a train" in shown("show", "pydantic_ai:c")
    assert "pydantic_ai:c[0]      user  find a train" in shown("search", "find")
    assert 'tool  {"platform": 4}' in shown("search", "platform")
    assert "pydantic_ai:c" in shown("threads", "--kind", "pydantic_ai")


def test_a_run_is_shown_as_steps_and_effects(shown):
    *_, booked, asked = shown("log", "pydantic_ai_run:r").splitlines()

    assert "tool_call" in booked
    assert 'model_request assistant: book({"seat": "a"})' in asked
    assert 'book {"seat": "a"} → {"platform": 4}' in shown(
        "effects", "pydantic_ai_run:r"
    )
    assert "pydantic_ai_entries" not in shown("threads")
