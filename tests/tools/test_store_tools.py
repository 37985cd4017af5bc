"""The tools that list, read and search threads of every kind, and documents."""

import jsonschema
import pytest

from holdfast.tools import Toolset


@pytest.fixture
def tools(memory):
    memory.thread("graph", kind="langgraph").save(
        {"messages": [{"role": "user", "content": "A train to Lyon"}], "step": 1}
    )
    memory.thread("graph").append(messages=[{"role": "ai", "content": "Booked"}])
    memory.documents.save("notes/trains", "The 9:14 is late", metadata={"by": "ann"})
    memory.documents.save("plans/lyon", {"days": 3})
    return Toolset(memory, threads=True)


def test_threads_of_every_kind_are_listed_in_pages(tools):
    first = tools.call("thread_list", {"limit": 2})
    rest = tools.call("thread_list", {"limit": 2, "cursor": first["cursor"]})
    graphs = tools.call("thread_list", {"kind": "langgraph"})["threads"]
    notes = tools.call("thread_list", {"prefix": "document:notes"})["threads"]

    names = [thread["thread"] for thread in first["threads"] + rest["threads"]]
    assert names == ["document:plans/lyon", "document:notes/trains", "graph"]
    assert rest["cursor"] is None
    assert [(graph["thread"], graph["steps"]) for graph in graphs] == [("graph", 2)]
    assert [note["thread"] for note in notes] == ["document:notes/trains"]


def test_a_state_is_read_now_and_as_it_was(tools):
    now = tools.call("thread_load", {"thread": "graph"})
    before = tools.call("thread_load", {"thread": "graph", "at": "@1"})
    part = tools.call("thread_load", {"thread": "graph", "part": "messages.1"})

    assert (now["step"], len(now["state"]["messages"])) == (2, 2)
    assert (before["step"], len(before["state"]["messages"])) == (1, 1)
    assert part["value"] == {"role": "ai", "content": "Booked"}


def test_a_long_state_is_shortened_and_read_on_by_its_parts(tools, memory):
    notes = "remember this. " * 10_000
    memory.thread("long").save({"notes": notes})

    shown = tools.call("thread_load", {"thread": "long"})
    pieces, cursor = [], None
    while True:
        asked = {"thread": "long", "part": "notes", "cursor": cursor}
        got = tools.call("thread_load", asked)
        pieces.append(got["piece"])
        cursor = got["cursor"]
        if cursor is None:
            break

    assert "Call thread_load with one of these as part" in shown["note"]
    assert "".join(pieces) == notes


def test_a_state_that_is_no_mapping_is_read_too(tools, memory):
    memory.thread("number").save(7)

    assert tools.call("thread_load", {"thread": "number"})["state"] == 7


def test_messages_are_found_in_threads_of_every_kind(tools):
    [found] = tools.call("thread_search", {"query": "LYON train"})["matches"]
    other = tools.call("thread_search", {"query": "lyon", "kind": "conversation"})

    assert (found["thread"], found["position"]) == ("graph", 0)
    assert other["matches"] == []


@pytest.mark.parametrize(
    ("name", "query", "tried"),
    [
        ("thread_search", "aeroplane", "Search for a part of it"),
        ("thread_search", "train aeroplane", "Found alone: 'train'"),
        ("conversation_search", "aeroplane", "Search for a part of it"),
        ("document_list", "aeroplane", "use fewer ones"),
    ],
)
def test_a_search_that_finds_nothing_says_what_to_try(tools, name, query, tried):
    assert tried in tools.call(name, {"query": query})["note"]


def test_documents_are_listed_found_and_read(tools):
    below = tools.call("document_list", {"category": "notes"})["documents"]
    found = tools.call("document_list", {"query": "LATE trains"})["documents"]
    read = tools.call("document_load", {"name": "notes/trains"})
    other = tools.call("document_load", {"name": "plans/lyon"})

    assert [one["name"] for one in below] == ["notes/trains"]
    assert [one["name"] for one in found] == ["notes/trains"]
    assert (read["value"], read["metadata"]) == ("The 9:14 is late", {"by": "ann"})
    assert other["value"] == {"days": 3}


@pytest.mark.parametrize(
    ("name", "asked", "meant"),
    [
        ("thread_load", {"thread": "grap"}, "'graph'"),
        ("document_load", {"name": "notes/train"}, "'notes/trains'"),
    ],
)
def test_what_is_not_there_is_told_with_what_is_meant(tools, name, asked, meant):
    error = tools.call(name, asked)["error"]

    assert error["code"] == "not_found"
    assert meant in error["hint"]


def test_a_model_that_is_limited_does_not_get_them(memory):
    own = Toolset(memory, threads=True, agent="planner")
    plain = Toolset(memory)

    assert len(own.tools) == len(plain.tools) == 14
    refused = own.call("thread_load", {"thread": "graph"})["error"]
    assert "beyond one agent" in refused["message"]


CALLS = [
    ("agent_save", {"agent_id": "planner", "state": {"n": 1}}),
    ("conversation_save", {"conversation_id": "c", "agent_id": "planner"}),
    ("agent_load", {"agent_id": "planner"}),
    ("agent_load", {"agent_id": "planner", "part": "state"}),
    ("agent_list", {}),
    ("conversation_load", {"conversation_id": "c"}),
    ("conversation_list", {}),
    ("conversation_search", {"query": "x"}),
    ("checkpoint_create", {"agent_id": "planner", "name": "k"}),
    ("checkpoint_restore", {"agent_id": "planner", "checkpoint": "k"}),
    ("checkpoint_list", {"agent_id": "planner"}),
    ("checkpoint_delete", {"agent_id": "planner", "checkpoint_id": "none"}),
    ("persistence_stats", {}),
    ("thread_list", {}),
    ("thread_load", {"thread": "agent:planner"}),
    ("thread_search", {"query": "x"}),
    ("document_list", {}),
    ("document_load", {"name": "notes/trains"}),
    ("conversation_delete", {"conversation_id": "c"}),
    ("agent_delete", {"agent_id": "planner"}),
]


def test_results_are_as_the_schemas_say(tools):
    schemas = {tool["name"]: tool["outputSchema"] for tool in tools.mcp()}

    for name, asked in CALLS:
        result = tools.call(name, asked)
        assert "error" not in result
        jsonschema.validate(result, schemas[name])
        assert schemas[name]["properties"].keys() & result.keys()
    assert {name for name, _ in CALLS} == schemas.keys()
