"""Every tool and resource through the official client, on every transport and era."""

from __future__ import annotations

import json

import pytest
from mcp.shared.exceptions import MCPError
from served import ERAS, over_http, over_stdio, serving

import holdfast
from holdfast.tools import Toolset
from inner.tools import LARGEST
from support.toolsets import json_size

READING = {
    "agent_load",
    "agent_list",
    "conversation_load",
    "conversation_list",
    "conversation_search",
    "checkpoint_list",
    "persistence_stats",
    "thread_list",
    "thread_load",
    "thread_search",
    "document_list",
    "document_load",
}
DELETING = {"agent_delete", "conversation_delete", "checkpoint_delete"}
NEW_EACH_TIME = {"checkpoint_create", "checkpoint_restore"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One server over HTTP for the clients of all eras."""
    with serving(tmp_path_factory.mktemp("http") / "store.db") as served:
        yield served


@pytest.fixture(
    scope="module",
    params=[(way, era) for way in ("stdio", "http") for era in ERAS],
    ids="-".join,
)
def connection(request, tmp_path_factory):
    """The official client, connected in each way."""
    way, era = request.param
    if way == "stdio":
        store = tmp_path_factory.mktemp("stdio") / "store.db"
        with over_stdio(store, era=era) as found:
            yield found
    else:
        with over_http(request.getfixturevalue("shared"), era) as found:
            yield found


@pytest.fixture
def remote(connection):
    """A connection whose store is empty."""
    yield connection
    for agent in connection.result("agent_list")["agents"]:
        connection.result("agent_delete", agent_id=agent["agent_id"])


def test_the_tools_are_listed_as_the_registry_describes_them(remote):
    described = Toolset(holdfast.open(":memory:"), threads=True).mcp()

    listed = remote.tools()

    wire = [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]
    assert wire == described
    assert len(wire) == 19
    assert all(tool["outputSchema"] for tool in wire)


def test_every_tool_is_marked_with_what_it_may_do(remote):
    marks = {
        tool.name: tool.annotations.model_dump(exclude_none=True)
        for tool in remote.tools()
    }

    # What is left out is what the protocol assumes: it changes, it destroys, and a
    # second call does more.
    closed = {"open_world_hint": False}
    for name, found in marks.items():
        if name in READING:
            assert found == {"read_only_hint": True, **closed}
        elif name in DELETING:
            assert found == {"idempotent_hint": True, **closed}
        elif name in NEW_EACH_TIME:
            assert found == {"destructive_hint": False, **closed}
        else:
            gentle = {"destructive_hint": False, "idempotent_hint": True}
            assert found == {**gentle, **closed}


def test_every_tool_does_its_work(remote):
    call = remote.result
    message = {"role": "user", "content": "Find me a train"}

    made = call("agent_save", agent_id="planner", name="Planner", state={"n": 1})
    said = call(
        "conversation_save",
        conversation_id="trip",
        agent_id="planner",
        messages=[message],
    )
    kept = call("checkpoint_create", agent_id="planner", name="before")
    call("agent_save", agent_id="planner", state={"n": 2})
    call("conversation_save", conversation_id="trip", messages=[message, message])
    agents = call("agent_list")["agents"]
    talks = call("conversation_list", agent_id="planner")["conversations"]
    found = call("conversation_search", query="TRAIN", conversation_id="trip")
    stats = call("persistence_stats")
    checkpoints = call("checkpoint_list", agent_id="planner")["checkpoints"]
    back = call("checkpoint_restore", agent_id="planner", checkpoint="before")
    agent = call("agent_load", agent_id="planner")
    talk = call("conversation_load", conversation_id="trip")
    dropped = call(
        "checkpoint_delete", agent_id="planner", checkpoint_id=kept["checkpoint_id"]
    )
    ended = call("conversation_delete", conversation_id="trip")
    gone = call("agent_delete", agent_id="planner")

    assert (made["created"], said["added"]) == (True, 1)
    assert [agent["agent_id"] for agent in agents] == ["planner"]
    assert [talk["message_count"] for talk in talks] == [3]
    assert [match["snippet"] for match in found["matches"]] == ["Find me a train"] * 3
    assert (stats["agents"], stats["agent_checkpoints"]) == (1, 1)
    assert checkpoints[0]["checkpoint_id"] == kept["checkpoint_id"]
    assert back["rewound"]["conversation_ids"] == ["trip"]
    assert agent["state"] == {"n": 1}
    assert [m["content"] for m in talk["messages"]] == ["Find me a train"]
    assert dropped == {"deleted": 1}
    assert ended == {"deleted": 1}
    assert gone["deleted"] == 1


def test_threads_and_documents_are_listed_read_and_searched(remote):
    call = remote.result
    message = {"role": "user", "content": "Find me a train"}
    call("agent_save", agent_id="planner")
    call(
        "conversation_save",
        conversation_id="trip",
        agent_id="planner",
        messages=[message],
    )

    threads = call("thread_list", kind="conversation")["threads"]
    state = call("thread_load", thread="conversation:trip", part="messages.0")
    [found] = call("thread_search", query="find train")["matches"]
    documents = call("document_list", query="anything")

    assert [thread["thread"] for thread in threads] == ["conversation:trip"]
    assert state["value"]["content"] == found["snippet"] == "Find me a train"
    assert documents["documents"] == [] != documents["note"]


def test_what_is_wrong_is_a_result_that_says_what_to_do(remote):
    missing, told = remote.error("agent_load", agent_id="nobody")
    unknown, _ = remote.error("agent_lod")
    wrong, _ = remote.error("agent_load", agent_id=7)

    codes = [error["code"] for error in (missing, unknown, wrong)]
    assert codes == ["not_found", "unknown_tool", "invalid_arguments"]
    assert told == f"{missing['message']}. {missing['hint']}"


def test_what_is_long_is_cut_and_read_on_by_cursor_and_address(remote):
    notes = "änderung " * 20_000
    remote.result("agent_save", agent_id="long", state={"notes": notes})

    answer = remote.called("agent_load", agent_id="long")

    text, link = answer.content
    assert len(text.text.encode()) <= LARGEST
    assert answer.structured_content["note"].startswith("Shortened: state.")
    assert (link.type, link.name, link.mime_type) == (
        "resource_link",
        "agent:long",
        "application/json",
    )
    assert in_pieces(remote, f"{link.uri}?part=state.notes") == notes


def in_pieces(remote, uri):
    pieces = []
    while uri:
        found = remote.read(uri)
        assert json_size(found) <= LARGEST
        pieces.append(found["piece"])
        uri = found.get("next")
    return "".join(pieces)


def test_every_thread_is_a_resource_and_every_checkpoint_can_be_read(remote):
    remote.result("agent_save", agent_id="seen", state={"n": 1})
    kept = remote.result("checkpoint_create", agent_id="seen")
    remote.result("agent_save", agent_id="seen", state={"n": 2})

    listed = remote.do(remote.client.list_resources).resources
    [template] = remote.do(remote.client.list_resource_templates).resource_templates
    newest = next(found for found in listed if found.name == "agent:seen")
    held = remote.read(f"holdfast://checkpoint/{kept['checkpoint_id']}")

    assert template.uri_template == "holdfast://checkpoint/{id}{?part,cursor}"
    assert remote.read(newest.uri)["state"]["state"] == {"n": 2}
    assert (held["total"], held["cursor"]) == (1, None)
    [holding] = held["holds"]
    assert holding["thread"] == "agent:seen"
    assert remote.read(holding["uri"])["state"]["state"] == {"n": 1}


def test_a_resource_that_is_not_there_is_an_error_that_names_it(remote):
    uri = "holdfast://checkpoint/nothing"

    with pytest.raises(MCPError) as refused:
        remote.read(uri)

    assert refused.value.error.code == -32602
    assert refused.value.error.data == {"uri": uri, "code": "not_found"}


def test_texts_of_any_kind_arrive_as_they_were_sent(remote):
    text = '\u2028\x00\x1b[31m</script>"\\\n💾' + json.dumps({"jsonrpc": "2.0"})

    remote.result("agent_save", agent_id="text", system_prompt=text)

    assert remote.result("agent_load", agent_id="text")["system_prompt"] == text
