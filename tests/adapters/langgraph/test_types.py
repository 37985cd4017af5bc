"""What channels may hold: it comes back the same, or it is refused with a reason."""

import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import pathlib
import re
import uuid
import warnings
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Annotated, Any, NamedTuple, TypedDict

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.agents import (
    AgentAction,
    AgentActionMessageLog,
    AgentFinish,
    AgentStep,
)
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.prompt_values import ChatPromptValue
from langgraph.graph import START, StateGraph
from langgraph.store.base import Item
from langgraph.types import Command, Interrupt, Send

import holdfast
from adapters.langgraph.graphs import put, thread
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.operations.values import codec
from inner.langgraph import Types

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678, dt.UTC)


class Colour(enum.Enum):
    RED = "red"
    BLUE = ("dark", "blue")


class Flags(enum.Flag):
    A = enum.auto()
    B = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    colour: Colour = Colour.RED


class Step(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str = pydantic.Field(alias="title")
    at: Point | None = None
    _notes: dict[str, Any] = pydantic.PrivateAttr(default_factory=dict)


class Plan(pydantic.BaseModel):
    steps: list[Step] = []
    by_colour: dict[Colour, int] = {}
    checked: bool = False

    @pydantic.model_validator(mode="after")
    def never_twice(self):
        assert not self.checked, "validators must not run on what was kept"
        return self


class Pair(NamedTuple):
    left: Any
    right: Any = None


class UserId(str):
    __slots__ = ()


class State(TypedDict):
    plan: Annotated[list[Plan], "a note"]
    pair: "Pair | None"


ALLOWED = [Plan, Pair, Flags, UserId]


def same(left, right, allow=ALLOWED):
    """Whether two values are equal and of the same types all the way down."""
    types = Types(allow)
    return left == right and types.encode(left, "") == types.encode(right, "")


def kept(value, allow=ALLOWED):
    with HoldfastSaver(":memory:", allow=allow) as saver:
        config = put(saver, thread("t"), {"x": value})
        saver.put_writes(config, [("x", value)], "task")
        found = saver.get_tuple(thread("t"))
    [(_, _, written)] = found.pending_writes
    assert same(written, value, allow)
    return found.checkpoint["channel_values"]["x"]


STANDARD = [
    None,
    True,
    1 << 80,
    float("inf"),
    b"\0\xff",
    bytearray(b"abc"),
    (1, (2, [3])),
    {1, "a"},
    frozenset({(1, 2)}),
    {(1, 2): "tuple", 3: "number", None: "none"},
    NOW,
    NOW.replace(tzinfo=None),
    NOW.replace(tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1),
    NOW.astimezone(dt.timezone(dt.timedelta(hours=2), "X")),
    NOW.date(),
    NOW.timetz(),
    dt.timedelta(days=-1, microseconds=3),
    dt.timezone(dt.timedelta(hours=1), "here"),
    zoneinfo.ZoneInfo("Asia/Tokyo"),
    decimal.Decimal("1.10"),
    uuid.UUID(int=7),
    pathlib.Path("a/b"),
    pathlib.PurePosixPath("/x"),
    pathlib.PureWindowsPath("c:/x"),
    re.compile("a+", re.IGNORECASE),
    re.compile(b"a+"),
    ipaddress.ip_address("127.0.0.1"),
    ipaddress.ip_network("10.0.0.0/8"),
    ipaddress.ip_interface("::1/64"),
    deque([1, (2,)], maxlen=5),
    OrderedDict(b=1, a=2),
    Counter("aab"),
    defaultdict(list, {"a": [1]}),
    pydantic.SecretStr("hidden"),
]


@pytest.mark.parametrize("value", STANDARD, ids=lambda value: type(value).__name__)
def test_the_types_of_python_come_back(value):
    found = kept(value)

    assert found == value
    assert type(found) is type(value)


def test_a_time_zone_keeps_its_rules():
    berlin = dt.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))

    found = kept([berlin])[0]

    assert found.tzinfo is berlin.tzinfo
    assert (found + dt.timedelta(days=200)).utcoffset() == dt.timedelta(hours=1)


CALL = {"name": "search", "args": {"q": "x"}, "id": "c1", "type": "tool_call"}
MESSAGES = [
    HumanMessage("hello", id="1"),
    HumanMessage([{"type": "text", "text": "hi"}, {"type": "image", "base64": "="}]),
    AIMessage("", tool_calls=[CALL], usage_metadata=None, name="bot"),
    AIMessage("x", response_metadata={"model": "m"}, additional_kwargs={"a": [1]}),
    AIMessageChunk("part", id="2"),
    SystemMessage("be brief"),
    ToolMessage("found", tool_call_id="c1", status="error", artifact={"raw": b"\0"}),
    FunctionMessage("done", name="f"),
    ChatMessage("hi", role="critic"),
    RemoveMessage(id="1"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_messages_come_back(message):
    [found] = kept([message])

    assert found == message
    assert type(found) is type(message)
    assert found.model_dump() == message.model_dump()


def test_messages_are_stored_as_messages(quick, quick_store):
    put(quick, thread("t"), {"messages": MESSAGES[:1] + MESSAGES[2:3]})

    stored = quick_store.thread("t").load()["messages"]

    assert stored == [
        {"__type__": "HumanMessage", "role": "user", "content": "hello", "id": "1"},
        {
            "__type__": "AIMessage",
            "role": "assistant",
            "content": "",
            "name": "bot",
            "tool_calls": [CALL],
        },
    ]


def test_what_a_message_carries_beside_its_fields_comes_back():
    message = HumanMessage("hello", more={"x": (1,)})

    assert kept(message) == message
    assert kept(message).more == {"x": (1,)}


def test_an_empty_value_that_is_no_default_comes_back():
    message = ToolMessage("", tool_call_id="", id="", name="")

    found = kept(message)

    assert (found.id, found.name, found.tool_call_id) == ("", "", "")


def test_the_text_of_a_message_comes_back():
    text = AIMessage("some text").text

    found = kept({"text": text})["text"]

    assert found == "some text"
    assert type(found) is type(text)


GRAPHS = [
    Send("node", {"x": (1,)}),
    Interrupt(value={"ask": ("a", "b")}, id="i"),
    Command(update={"x": 1}, goto=[Send("n", None)], resume={"a": 1}),
    Document("text", metadata={"page": (1, 2)}, id="d"),
    Item(value={"a": 1}, key="k", namespace=("n",), created_at=NOW, updated_at=NOW),
    AgentAction("search", {"q": ("x",)}, "I search"),
    AgentActionMessageLog("search", "x", "", message_log=[AIMessage("so")]),
    AgentStep(action=AgentAction("search", "x", ""), observation=[1]),
    AgentFinish({"output": "found"}, "done"),
    ChatPromptValue(messages=[HumanMessage("hello")]),
    LLMResult(generations=[[ChatGeneration(message=AIMessage("so"))]]),
]


@pytest.mark.parametrize("value", GRAPHS, ids=lambda value: type(value).__name__)
def test_the_types_of_langgraph_come_back(value):
    found = kept({"x": [value]})["x"][0]

    assert found == value
    assert type(found) is type(value)


OWN = [
    Colour.RED,
    Colour.BLUE,
    Flags.A | Flags.B,
    Point(1, 2, Colour.BLUE),
    Pair(Pair(1), [Pair(2, 3)]),
    UserId("ann"),
    {Colour.RED: Point(1)},
    {Colour.RED, Colour.BLUE},
]


@pytest.mark.parametrize("value", OWN, ids=lambda value: type(value).__name__)
def test_classes_that_are_allowed_come_back_with_what_they_hold(value):
    assert same(kept(value), value)


def test_a_model_comes_back_as_it_was_without_being_validated():
    step = Step(title="one", at=Point(1), surprise={"x": (1,)})  # type: ignore[call-arg]
    step._notes["seen"] = {Point(2)}
    plan = Plan(steps=[step], by_colour={Colour.RED: 1})
    plan.checked = True

    found = kept(plan)

    assert found == plan
    assert found.steps[0]._notes == {"seen": {Point(2)}}
    assert found.steps[0].model_fields_set == step.model_fields_set


def test_a_model_of_the_first_pydantic_comes_back():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pydantic import v1

    class Old(v1.BaseModel):
        name: str
        tags: list[str] = []

    found = kept(Old(name="x", tags=["a"]), allow=[Old])

    assert found == Old(name="x", tags=["a"])


def test_a_typed_dict_allows_what_its_fields_hold():
    plan = Plan(steps=[Step(title="one", at=Point(1))])

    assert kept([plan, Pair(1)], allow=[State]) == [plan, Pair(1)]


def test_a_class_may_grow_and_lose_fields(quick_store):
    before = dataclasses.make_dataclass("Thing", ["a", "b"])
    now = dataclasses.make_dataclass(
        "Thing", ["a", ("c", list, dataclasses.field(default_factory=list))]
    )
    config = put(
        HoldfastSaver(quick_store, allow=[before]), thread("t"), {"x": before(1, 2)}
    )

    found = HoldfastSaver(quick_store, allow=[now]).get_tuple(config)

    assert found.checkpoint["channel_values"]["x"] == now(1, [])


def test_a_class_with_a_new_field_and_no_default_is_refused_with_the_reason(
    quick_store,
):
    before = pydantic.create_model("Thing", a=(int, 1))
    now = pydantic.create_model("Thing", a=(int, 1), b=(int, ...))
    config = put(
        HoldfastSaver(quick_store, allow=[before]), thread("t"), {"x": before()}
    )

    with pytest.raises(
        holdfast.FormatMismatch, match=r"Thing cannot be made again.*'b'"
    ):
        HoldfastSaver(quick_store, allow=[now]).get_tuple(config)


def test_user_data_that_look_like_a_type_come_back_as_they_are():
    value = {"__type__": "HumanMessage", "content": {"__type__": {"__type__": "x"}}}

    assert kept([value, {"a": value}]) == [value, {"a": value}]


def test_an_exception_becomes_what_langgraph_makes_of_it(quick):
    config = put(quick, thread("t"))

    quick.put_writes(config, [("__error__", ValueError("no"))], "task")

    [(_, _, told)] = quick.get_tuple(config).pending_writes
    assert told == "ValueError('no')"


def test_a_class_that_is_not_allowed_is_refused_when_it_is_saved(quick):
    with pytest.raises(holdfast.Unstorable) as caught:
        put(quick, thread("t"), {"x": {"plans": [1, Plan()]}})

    assert caught.value.path == "channel_values['x']['plans'][1]"
    assert "Plan is not storable; pass the class: allow=[Plan]" in str(caught.value)
    assert quick.get_tuple(thread("t")) is None


def test_a_part_that_is_refused_is_found_inside_of_objects(quick):
    message = AIMessage("x", additional_kwargs={"callback": print})

    with pytest.raises(holdfast.Unstorable) as caught:
        put(quick, thread("t"), {"messages": [message]})

    where = "channel_values['messages'][0].additional_kwargs['callback']"
    assert caught.value.path == where


def test_a_class_that_is_not_allowed_is_refused_when_it_is_loaded(quick, quick_store):
    config = put(HoldfastSaver(quick_store, allow=[Plan]), thread("t"), {"x": Plan()})

    with pytest.raises(holdfast.FormatMismatch, match=rf"'{Plan.__module__}\.Plan'"):
        quick.get_tuple(config)


def test_what_is_inside_itself_is_refused(quick):
    endless = []
    endless.append(endless)

    with pytest.raises(holdfast.Unstorable, match="inside itself"):
        put(quick, thread("t"), {"x": endless})


@pytest.mark.parametrize("given", [print, "Plan", object, dict])
def test_only_classes_that_can_be_taken_apart_can_be_allowed(given):
    with pytest.raises(holdfast.Unstorable, match="allow"):
        HoldfastSaver(":memory:", allow=[given])


def test_a_graph_allows_the_classes_of_its_state(quick):
    with_plans = quick.with_allowlist({(__name__, "Plan"), ("gone", "X")})
    builder = StateGraph(State)
    builder.add_node("plan", lambda _: {"plan": [Plan(steps=[Step(title="one")])]})
    builder.add_edge(START, "plan")
    graph = builder.compile(checkpointer=with_plans)

    graph.invoke({"plan": []}, thread("t"))

    assert graph.get_state(thread("t")).values["plan"][0].steps[0].name == "one"
    assert quick.with_allowlist(set()) is quick


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
)
VALUES = st.recursive(
    JSON | st.binary() | st.builds(Point, st.integers()) | st.sampled_from(Colour),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.just("__type__"), inner)
        | st.builds(Pair, inner, inner)
        | st.builds(HumanMessage, st.text(), artifact=inner)
        | st.builds(Send, st.text(), inner)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_whatever_is_accepted_comes_back_the_same(value):
    types = Types(ALLOWED)
    text = types.encode(value, "x")

    found = types.revive(codec.decode(text))

    assert found == value
    assert types.encode(found, "x") == text
