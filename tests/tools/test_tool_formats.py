"""The tools in the words of the providers, as functions, and in the documentation."""

import inspect
import json
import os
import subprocess
import sys
from typing import Any

import jsonschema
import pydantic
import pytest

import holdfast
from holdfast.tools import TOOLS, AsyncToolset, Toolset
from support.folders import DOCS
from support.toolsets import Awaited, Blocking, json_size

# The schemas of these cannot list the keys of their objects.
FREE = {"agent_save", "conversation_save"}
FOURTEEN = [
    "agent_save",
    "agent_load",
    "agent_delete",
    "agent_list",
    "conversation_save",
    "conversation_load",
    "conversation_delete",
    "conversation_list",
    "conversation_search",
    "checkpoint_create",
    "checkpoint_restore",
    "checkpoint_list",
    "checkpoint_delete",
    "persistence_stats",
]


@pytest.fixture(params=[Blocking, Awaited], ids=["blocking", "awaited"])
def desk(request, path):
    made = request.param(path)
    yield made
    made.close()


@pytest.fixture
def tools(memory):
    return Toolset(memory)


def nodes(schema):
    """A schema and everything in it."""
    yield schema
    inside = [*schema.get("properties", {}).values(), schema.get("items")]
    for node in filter(None, inside):
        yield from nodes(node)


def test_there_are_fourteen_tools():
    assert [tool.name for tool in TOOLS] == FOURTEEN


def test_the_definitions_of_all_tools_over_mcp_take_less_than_ten_kilobytes(memory):
    every = Toolset(memory, threads=True).mcp()

    assert json_size(every) < 10_000
    for tool in every:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
        assert tool["outputSchema"]["properties"]


def test_the_marks_say_what_a_tool_can_do():
    def marked(mark):
        return {tool.name for tool in TOOLS if getattr(tool, mark)}

    assert marked("read_only") == {
        "agent_load",
        "agent_list",
        "conversation_load",
        "conversation_list",
        "conversation_search",
        "checkpoint_list",
        "persistence_stats",
    }
    assert marked("destructive") == {
        "agent_delete",
        "conversation_delete",
        "checkpoint_delete",
    }
    assert set(FOURTEEN) - marked("idempotent") == {
        "checkpoint_create",
        "checkpoint_restore",
    }


def test_the_schemas_are_small_and_in_one_piece():
    texts = [json.dumps(tool.schema, separators=(",", ":")) for tool in TOOLS]

    assert sum(map(len, texts)) <= 6000
    for text in texts:
        assert "$ref" not in text
        assert "$defs" not in text
        assert "anyOf" not in text
        assert '"default"' not in text


@pytest.mark.parametrize("strict", [True, False])
def test_every_schema_is_one_of_json_schema(tools, strict):
    schemas = [
        *(tool["function"]["parameters"] for tool in tools.openai(strict=strict)),
        *(tool["input_schema"] for tool in tools.anthropic(strict=strict)),
    ]

    for schema in schemas:
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", FOURTEEN)
def test_every_argument_is_described(name):
    [tool] = [tool for tool in TOOLS if tool.name == name]

    for about in tool.schema["properties"].values():
        assert about["description"]
        assert not about["description"].endswith(".")
    assert len(tool.description) > 100


def test_strict_openai_has_every_key_required_and_no_limits(tools):
    for tool in tools.openai():
        function = tool["function"]
        assert function["strict"] is (function["name"] not in FREE)
        for node in nodes(function["parameters"]) if function["strict"] else ():
            assert not {"minLength", "minimum", "maximum", "default"} & node.keys()
            if "properties" in node:
                assert node["required"] == list(node["properties"])
                assert node["additionalProperties"] is False


def test_responses_has_the_same_tools_flat(tools):
    chat, flat = tools.openai(), tools.openai(responses=True)

    assert flat == [{"type": "function", **tool["function"]} for tool in chat]


def test_openai_without_strict_says_so(tools):
    assert not any(
        tool["strict"] for tool in tools.openai(responses=True, strict=False)
    )


def test_strict_anthropic_stays_within_what_a_request_may_have(tools):
    """Twenty strict tools, 24 optional arguments, no limits, and few type unions."""
    strict = [tool for tool in tools.anthropic(strict=True) if tool.get("strict")]
    schemas = [tool["input_schema"] for tool in strict]
    optional = [s["properties"].keys() - set(s.get("required", ())) for s in schemas]

    assert {tool["name"] for tool in strict} == set(FOURTEEN) - FREE
    assert sum(map(len, optional)) <= 24
    for node in (node for schema in schemas for node in nodes(schema)):
        assert isinstance(node["type"], str)
        assert None not in node.get("enum", ())
        assert not {"minLength", "minimum", "maximum"} & node.keys()


def test_what_is_bound_disappears_from_every_schema(memory):
    bound = Toolset(memory, agent="a", owner="u")

    for tool in bound.mcp():
        assert not {"agent_id", "owner"} & tool["inputSchema"]["properties"].keys()


# --- calls and answers ----------------------------------------------------------------


def chat_call(name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": "call_1", "type": "function", "function": function}


def test_a_call_of_openai_chat_is_answered(desk):
    answer = desk.toolset().answer(chat_call("agent_save", {"agent_id": "ä"}))

    assert (answer["role"], answer["tool_call_id"]) == ("tool", "call_1")
    assert json.loads(answer["content"])["agent_id"] == "ä"
    assert "ä" in answer["content"]


def test_a_call_of_openai_responses_is_answered(desk):
    call = {"type": "function_call", "call_id": "c", "name": "agent_list"}

    answer = desk.toolset().answer({**call, "arguments": "{}"})

    assert (answer["type"], answer["call_id"]) == ("function_call_output", "c")
    assert json.loads(answer["output"]) == {"agents": [], "cursor": None}


def test_a_call_of_anthropic_is_answered_and_an_error_marked(desk):
    use = {"type": "tool_use", "id": "u", "name": "agent_list", "input": {}}

    answer = desk.toolset().answer(use)
    wrong = desk.toolset().answer({**use, "input": {"limit": -1}})

    assert answer == {
        "type": "tool_result",
        "tool_use_id": "u",
        "content": '{"agents":[],"cursor":null}',
    }
    assert wrong["is_error"] is True
    assert "limit" in json.loads(wrong["content"])["error"]["message"]


def test_what_is_no_call_is_refused(tools):
    for call in (None, [], {"type": "text"}, {"type": "function_call", "name": "x"}):
        with pytest.raises(holdfast.Unstorable, match="call"):
            tools.answer(call)


def test_a_call_may_be_an_object_of_a_provider_s_library(tools):
    class Use(pydantic.BaseModel):
        type: str = "tool_use"
        id: str = "u"
        name: str = "agent_list"
        input: dict[str, object] = {}

    assert tools.answer(Use())["tool_use_id"] == "u"


# --- functions ------------------------------------------------------------------------


def test_functions_look_as_if_written_by_hand(tools):
    functions = tools.callables()

    save = functions["conversation_save"]
    signature = inspect.signature(save)

    assert list(functions) == FOURTEEN
    assert save.__name__ == "conversation_save"
    assert signature.parameters["conversation_id"].annotation is str
    assert signature.parameters["conversation_id"].default is inspect.Parameter.empty
    assert signature.parameters["tags"].annotation == list[str] | None
    assert signature.parameters["messages"].annotation == list[dict[str, str]] | None
    assert signature.parameters["messages"].default is None
    assert inspect.get_annotations(save)["return"] == dict[str, Any]
    assert "    title: Title to show" in inspect.getdoc(save)


def test_functions_are_called_by_position_and_by_name(tools):
    functions = tools.callables()

    made = functions["agent_save"]("a", name="A")

    assert made["created"] is True
    assert functions["agent_load"](agent_id="a")["name"] == "A"
    assert "error" in functions["agent_load"]("b")


def test_functions_of_the_async_door_are_awaited(path):
    desk = Awaited(path)
    functions = AsyncToolset(desk.opened).callables()

    made = desk.runner.run(functions["agent_save"]("a"))

    assert inspect.iscoroutinefunction(functions["agent_save"])
    assert made["created"] is True
    desk.close()


def test_pydantic_makes_schemas_of_the_functions(tools):
    for name, function in tools.callables().items():
        schema = pydantic.TypeAdapter(function).json_schema()
        assert list(schema["properties"]) == list(
            inspect.signature(function).parameters
        )
        assert schema["type"] == "object", name


def test_functions_leave_out_what_is_bound(memory):
    load = Toolset(memory, agent="a").callables()["agent_load"]

    assert list(inspect.signature(load).parameters) == ["part", "cursor"]
    assert "agent_id" not in inspect.getdoc(load).partition("Args:")[2]


# --- documentation --------------------------------------------------------------------


def test_the_page_describes_the_tools_as_they_are():
    """Ends with what ``python -m holdfast.tools`` prints."""
    page = (DOCS / "tools.md").read_text()

    printed = subprocess.run(
        [sys.executable, "-m", "holdfast.tools"],
        check=True,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    ).stdout

    assert page.partition("## The tools\n\n")[2] == printed
