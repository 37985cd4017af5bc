"""Toolsets that let a model do less: reading only, some tools, one agent, one user."""

import pytest

from holdfast import Agent
from holdfast.tools import TOOLS, Toolset
from support.toolsets import Awaited, Blocking

HELLO = {"role": "user", "content": "hello there"}
READING = {
    "agent_load",
    "agent_list",
    "conversation_load",
    "conversation_list",
    "conversation_search",
    "checkpoint_list",
    "persistence_stats",
}


@pytest.fixture(params=[Blocking, Awaited], ids=["blocking", "awaited"])
def desk(request, path):
    """A store whose tools are called through the sync and the async API."""
    made = request.param(path)
    yield made
    made.close()


def error_of(result):
    return result["error"]


def test_read_only_leaves_seven_tools_and_refuses_the_others(desk):
    desk.store.agents.save(Agent(id="a"))
    reading = desk.toolset(read_only=True)

    refused = [
        error_of(reading.call(tool.name, {"agent_id": "a"}))
        for tool in TOOLS
        if tool.name not in READING
    ]

    assert [e["code"] for e in refused] == ["tool_unavailable"] * 7
    assert "only reading" in refused[0]["message"]
    assert "agents" in reading.call("agent_list")
    assert desk.store.agents.find("a") is not None


def test_only_leaves_the_tools_it_names(memory):
    few = Toolset(memory, only=["agent_save", "agent_list"], read_only=True)

    refused = error_of(few.call("agent_load", {"agent_id": "a"}))

    assert [tool.name for tool in few.tools] == ["agent_list"]
    assert refused["hint"] == "The tools here are agent_list."


@pytest.fixture
def two_agents(desk):
    for agent in ("mine", "other"):
        desk.store.agents.save(Agent(id=agent))
        desk.store.conversations.create(f"{agent}-c", agent=agent, messages=[HELLO])
        desk.store.agents.checkpoint(agent, "first")
    return desk


def test_a_model_bound_to_an_agent_reaches_only_that(two_agents):
    bound = two_agents.toolset(agent="mine")

    listed = bound.call("conversation_list")["conversations"]
    found = bound.call("conversation_search", {"query": "hello"})["matches"]
    foreign = {"conversation_id": "other-c"}

    assert bound.call("agent_load")["agent_id"] == "mine"
    assert [a["agent_id"] for a in bound.call("agent_list")["agents"]] == ["mine"]
    assert bound.call("agent_list", {"type": "x"})["agents"] == []
    assert [c["conversation_id"] for c in listed] == ["mine-c"]
    assert [m["conversation_id"] for m in found] == ["mine-c"]
    assert error_of(bound.call("conversation_load", foreign))["code"] == "not_found"
    assert "other" not in error_of(bound.call("conversation_load", foreign))["hint"]
    assert bound.call("conversation_delete", foreign)["deleted"] == 0
    assert "not yours" in error_of(bound.call("conversation_save", foreign))["message"]
    assert bound.call("persistence_stats") == {
        "agents": 1,
        "conversations": 1,
        "messages": 1,
        "agent_checkpoints": 1,
    }
    assert two_agents.store.conversations.load("other-c").messages == [HELLO]


def test_what_is_bound_cannot_be_chosen(two_agents):
    bound = two_agents.toolset(agent="mine")

    for tool in TOOLS:
        if "agent_id" in tool.schema["properties"]:
            refused = error_of(bound.call(tool.name, {"agent_id": "other"}))
            assert refused["hint"] == "Leave agent_id out."
    assert two_agents.store.agents.find("other") is not None


def test_what_a_bound_model_makes_belongs_to_its_agent_and_user(desk):
    bound = desk.toolset(agent="mine", owner="ann")

    bound.call("conversation_save", {"conversation_id": "c", "messages": [HELLO]})

    made = desk.store.conversations.load("c")
    assert (made.agent, made.owner) == ("mine", "ann")


def test_a_model_bound_to_a_user_reaches_only_conversations_of_that(desk):
    for owner in ("ann", "bob"):
        desk.store.conversations.create(owner, owner=owner, messages=[HELLO])
    bound = desk.toolset(owner="ann")

    listed = bound.call("conversation_list")["conversations"]
    found = bound.call("conversation_search", {"query": "hello"})["matches"]

    assert [c["conversation_id"] for c in listed] == ["ann"]
    assert [m["conversation_id"] for m in found] == ["ann"]
    assert error_of(bound.call("conversation_load", {"conversation_id": "bob"}))
    assert bound.call("conversation_delete", {"conversation_id": "bob"})["deleted"] == 0
    assert bound.call("persistence_stats") == {"conversations": 1, "messages": 1}
    for name in ("agent_delete", "agent_load", "checkpoint_restore"):
        assert "one user" in error_of(bound.call(name, {}))["message"]


def test_a_search_in_a_foreign_conversation_finds_nothing(desk):
    desk.store.conversations.create("c", owner="bob", messages=[HELLO])
    bound = desk.toolset(owner="ann")

    arguments = {"query": "hello", "conversation_id": "c"}

    assert error_of(bound.call("conversation_search", arguments))["code"] == "not_found"
