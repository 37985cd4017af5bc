"""What tools answer to mistakes: which argument, which ids there are, what to do."""

import pytest

import holdfast
from holdfast import Agent
from holdfast.tools import TOOLS, AsyncToolset, Toolset
from support.toolsets import Awaited, Blocking

HELLO = {"role": "user", "content": "hello there"}


@pytest.fixture(params=[Blocking, Awaited], ids=["blocking", "awaited"])
def desk(request, path):
    """A store whose tools are called through the sync and the async API."""
    made = request.param(path)
    yield made
    made.close()


@pytest.fixture
def tools(memory):
    return Toolset(memory)


def error_of(result):
    return result["error"]


@pytest.mark.parametrize(
    ("name", "arguments", "message", "hint"),
    [
        ("agent_load", {"agent_id": 1}, "agent_id: Expected `str`", "Id of the agent"),
        ("agent_load", {}, "agent_id is missing", "agent_id (required)"),
        ("agent_load", {"agent_id": ""}, "length >= 1", "agent_id (required)"),
        ("agent_load", {"agentid": "a"}, "no argument 'agentid'", "'agent_id'"),
        ("agent_list", {"limit": 501}, "limit: Expected `int` <= 500", "1 to 500"),
        ("agent_list", {"limit": 0}, "limit: Expected `int` >= 1", "1 to 500"),
        ("agent_list", {"limit": "5"}, "limit: Expected `int | null`", "1 to 500"),
        ("agent_list", {"cursor": "x"}, "cursor: ", "null to begin"),
        ("agent_list", {"cursor": "9" * 40}, "cursor: ", "null to begin"),
        ("agent_list", {1: 2}, "Expected `str`", "type, limit, cursor"),
        ("conversation_search", {"query": ""}, "at least one character", "again"),
        ("conversation_search", {"query": "x", "cursor": "9" * 90}, "cursor", "begin"),
        ("persistence_stats", {"x": 1}, "no argument 'x'", "no arguments"),
        (
            "checkpoint_list",
            {"agent_id": "a", "kind": "big"},
            "kind: Invalid enum value 'big'",
            "'automatic', 'manual', 'pre_operation', 'recovery'.",
        ),
        (
            "conversation_save",
            {"conversation_id": "c", "messages": [HELLO, {"role": "user"}]},
            "messages[1].content is missing",
            "messages (optional)",
        ),
        (
            "conversation_save",
            {"conversation_id": "c", "messages": [{"role": "bot", "content": ""}]},
            "messages[0].role: Invalid enum value 'bot'",
            "'assistant', 'system', 'user'",
        ),
        (
            "conversation_save",
            {"conversation_id": "c", "messages": [{**HELLO, "rol": 1}]},
            "messages[0] has no argument 'rol'",
            "role, content",
        ),
        (
            "agent_save",
            {"agent_id": "a", "state": [1]},
            "state: Expected `object | null`, got `array`",
            "What it remembers",
        ),
        ("agent_save", {"agent_id": "x" * 600}, "are allowed", "Correct"),
        ("agent_save", {"agent_id": "a\0"}, "agent_id: ", "Correct"),
        ("conversation_list", {"owner": "\ud800"}, "owner: ", "Correct"),
        ("agent_list", {"\ud800": 1}, "not valid text", "JSON object"),
    ],
)
def test_wrong_arguments_are_named_and_explained(tools, name, arguments, message, hint):
    refused = error_of(tools.call(name, arguments))

    assert refused["code"] in {"invalid_arguments", "unstorable"}
    assert message in refused["message"]
    assert hint in refused["hint"]


def test_a_thread_whose_name_is_no_text_is_refused(memory):
    found = Toolset(memory, threads=True).call("thread_load", {"thread": "\ud800"})

    assert error_of(found)["code"] == "unstorable"


@pytest.mark.parametrize(
    "text", ['{"limit": 3', "[]", '"x"', "nonsense", '{"type": "\\ud800"}', "[" * 9000]
)
def test_broken_json_is_explained(desk, text):
    refused = error_of(desk.toolset().call("agent_list", text))

    assert refused["code"] == "invalid_arguments"
    assert "JSON object" in refused["hint"]


@pytest.mark.parametrize("given", [None, "", " ", "{}", b"{}", {}])
def test_a_tool_without_needs_can_be_called_with_nothing(tools, given):
    assert tools.call("agent_list", given) == {"agents": [], "cursor": None}


def test_every_optional_argument_accepts_null(tools, memory):
    memory.agents.save(Agent(id="a"))
    memory.conversations.create("c", agent="a")
    needed = {"agent_id": "a", "conversation_id": "c", "query": "x", "checkpoint": "n"}
    needed["checkpoint_id"] = "n"
    memory.agents.checkpoint("a", "n")

    for tool in TOOLS:
        required = tool.schema.get("required", [])
        names = tool.schema["properties"]
        given = {name: needed[name] if name in required else None for name in names}
        if not tool.destructive:
            assert "error" not in tools.call(tool.name, given), tool.name


def test_an_unknown_tool_is_answered_with_the_nearest(tools):
    refused = error_of(tools.call("load_agent", {}))

    assert refused["code"] == "unknown_tool"
    assert "agent_load" in refused["hint"]


def test_what_is_not_there_is_answered_with_what_is(tools, memory):
    memory.agents.save(Agent(id="planner", state={"notes": 1}))
    memory.conversations.create("trip-7", agent="planner", messages=[HELLO])
    memory.agents.checkpoint("planner", "before")

    def hint(name, **arguments):
        refused = error_of(tools.call(name, arguments))
        assert refused["code"] == "not_found"
        return refused["hint"]

    assert hint("agent_load", agent_id="planer") == (
        "Did you mean 'planner'? agent_list gives all ids."
    )
    assert "'planner'" in hint("checkpoint_create", agent_id="zzz")
    assert "'trip-7'" in hint("conversation_load", conversation_id="trip-8")
    assert "'trip-7'" in hint("conversation_search", query="x", conversation_id="trip")
    assert "'before'" in hint(
        "checkpoint_restore", agent_id="planner", checkpoint="befor"
    )
    assert "messages.0 to messages.0" in hint(
        "conversation_load", conversation_id="trip-7", part="messages.1"
    )
    assert "'summary'" in hint(
        "conversation_load", conversation_id="trip-7", part="sumary"
    )
    assert "'title'" in hint(
        "conversation_load", conversation_id="trip-7", part="title.x"
    )
    assert "'state.notes'" in hint("agent_load", agent_id="planner", part="state.note")


def test_an_empty_store_says_how_to_begin(tools):
    agent = error_of(tools.call("agent_load", {"agent_id": "a"}))
    conversation = error_of(tools.call("conversation_load", {"conversation_id": "c"}))

    assert "agent_save" in agent["hint"]
    assert "conversation_save" in conversation["hint"]


def test_an_ambiguous_checkpoint_is_answered_with_the_choice(tools, memory):
    memory.agents.save(Agent(id="a"))
    ids = [memory.agents.checkpoint("a", id=f"made-{n}").id for n in range(2)]

    refused = error_of(
        tools.call("checkpoint_restore", {"agent_id": "a", "checkpoint": "made"})
    )

    assert refused["code"] == "ambiguous"
    assert all(id_ in refused["hint"] for id_ in ids)


def test_a_checkpoint_is_deleted_by_its_id_only(tools, memory):
    memory.agents.save(Agent(id="a"))
    made = [memory.agents.checkpoint("a", "same") for _ in range(2)]

    refused = error_of(
        tools.call("checkpoint_delete", {"agent_id": "a", "checkpoint_id": "same"})
    )

    assert made[1].id in refused["hint"]
    assert len(memory.agents.checkpoints("a")) == 2


def test_a_store_that_is_read_only_says_so(path):
    holdfast.open(path).close()

    with holdfast.open(path, read_only=True) as store:
        refused = error_of(Toolset(store).call("agent_save", {"agent_id": "a"}))

    assert refused["code"] == "read_only"
    assert "Do not retry" in refused["hint"]


def test_mistakes_of_the_program_are_raised(memory, path):
    closed = holdfast.open(path)
    closed.close()

    with pytest.raises(holdfast.Closed):
        Toolset(closed).call("agent_list")
    with pytest.raises(holdfast.Unstorable, match="arguments"):
        Toolset(memory).call("agent_list", [1])
    with pytest.raises(holdfast.Unstorable, match="name"):
        Toolset(memory).call(1)
    with pytest.raises(holdfast.Unstorable, match="AsyncToolset"):
        Toolset(None)
    with pytest.raises(holdfast.Unstorable, match="AsyncStore"):
        AsyncToolset(memory)
    with pytest.raises(holdfast.Unstorable, match="agent_load"):
        Toolset(memory, only=["agent_lod"])
    with pytest.raises(holdfast.Unstorable, match="must be a list; pass"):
        Toolset(memory, only="agent_load")
    with pytest.raises(holdfast.Unstorable, match="tool_use"):
        Toolset(memory).answer({"type": "text"})
    with pytest.raises(holdfast.Unstorable, match="input"):
        Toolset(memory).answer({"type": "tool_use", "id": "1", "name": "agent_list"})
    with pytest.raises(TypeError, match="agent_id"):
        Toolset(memory).callables()["agent_load"]()
