"""Objects in checkpoints come back equal, and nothing that is stored runs code."""

import asyncio
import base64
import pickle
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import agent_framework
import pytest
from agent_framework import (
    AgentExecutor,
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    AgentSession,
    Content,
    Executor,
    Message,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowEvent,
    WorkflowExecutor,
    WorkflowMessage,
    handler,
    response_handler,
)
from pydantic import BaseModel

import holdfast
from adapters.agent_framework.workflows import agent, builder, chain
from holdfast.adapters.agent_framework import HoldfastCheckpointStorage


class Colour(Enum):
    RED = "red"


@dataclass
class Part:
    colour: Colour
    made: datetime


class Order(BaseModel):
    number: int
    parts: list[Part] = []


@dataclass
class Question:
    text: str
    choices: list[str] = field(default_factory=list)


ALLOW = [Order, Question]


def stored(body, allow=ALLOW):
    """What a coroutine function gives with a store and a storage."""
    with holdfast.open(":memory:") as store:
        return asyncio.run(body(store, HoldfastCheckpointStorage(store, allow=allow)))


def back(value: Any) -> Any:
    """A value after it was saved in the state of a checkpoint and loaded again."""

    async def body(_, storage):
        given = WorkflowCheckpoint("wf", "g", state={"value": value})
        return (await storage.load(await storage.save(given))).state["value"]

    return stored(body)


PART = Part(Colour.RED, datetime(2026, 1, 2, tzinfo=UTC))
VALUES = [
    None,
    -0.0,
    10**30,
    b"\0\xff",
    ("a", [1, (2,)]),
    {1: "number", "1": "text", (2, 3): {4}},
    {"__type__": "Message", "__pickled__": "x"},
    deque([1], 3),
    OrderedDict(a=1),
    PART,
    Colour.RED,
    Order(number=1, parts=[PART]),
    {"": {"/": {"%2F": 1}}},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_equal_and_of_the_same_type(value):
    found = back(value)

    assert (found, type(found)) == (value, type(value))


CONTENTS = [
    Content.from_text("hi", annotations=[{"type": "citation", "title": "t"}]),
    Content.from_function_call("c1", "pay", arguments={"to": "ann"}),
    Content.from_function_result("c1", result={"paid": 3}),
    Content.from_uri("https://example.com/a.png", media_type="image/png"),
    Content.from_data(b"\0", media_type="application/x"),
]


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.type)
def test_messages_come_back_with_all_that_they_hold(content):
    message = Message("assistant", [content], message_id="m", author_name="ann")
    content.raw_representation = object()  # the provider's, never stored

    [found] = back([message])

    assert type(found) is Message
    assert found.to_dict() == message.to_dict()
    assert found.contents == [content]
    assert found.contents[0].raw_representation is None
    assert vars(found).keys() == vars(message).keys()


def test_responses_requests_and_sessions_come_back():
    message = Message("user", ["hi"])
    session = AgentSession(session_id="s")
    session.state["a"] = {"messages": [message]}
    response = AgentResponse(messages=[message], response_id="r", value=PART)
    executed = AgentExecutorResponse("a", response, full_conversation=[message])

    request, answer, kept = back([AgentExecutorRequest([message]), executed, session])

    assert request.messages[0].text == "hi"
    assert answer.agent_response.to_dict() == response.to_dict()
    assert answer.agent_response.value == PART
    assert kept.to_dict() == session.to_dict()


TYPES = [str, list[str], dict[str, list[int]], int | None, Question, Colour, Any]


@pytest.mark.parametrize("wanted", TYPES, ids=repr)
def test_the_types_of_a_request_come_back(wanted):
    event = WorkflowEvent.request_info("r1", "a", Question("which?"), wanted)

    found = back({"r1": event})["r1"]

    assert (found.request_id, found.data) == ("r1", Question("which?"))
    assert (found.request_type, found.response_type) == (Question, wanted)


def test_a_class_that_is_not_allowed_is_no_type_of_a_request():
    event = WorkflowEvent.request_info("r1", "a", "which?", HoldfastCheckpointStorage)

    with pytest.raises(holdfast.Unstorable, match=r"HoldfastCheckpointStorage.*allow="):
        back(event)


def test_an_object_that_its_own_shape_refuses_is_named():
    with pytest.raises(holdfast.Unstorable, match=r"value.*factory"):
        back([defaultdict(lambda: 1)])


# --- nothing runs ---------------------------------------------------------------------


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def test_a_pickle_in_the_framework_s_form_is_data_and_nothing_else():
    pickled = base64.b64encode(pickle.dumps(Bomb())).decode()
    given = {"__pickled__": pickled, "__type__": "test_objects:Bomb"}

    assert back(given) == given


def test_a_stored_name_is_not_looked_up():
    async def body(store, storage):
        await storage.save(WorkflowCheckpoint("wf", "g", checkpoint_id="1"))
        [run] = store.threads()
        thread = store.thread(run.id)
        for name in ("os.system", "type", "agent_framework.Agent"):
            value = {"__type__": name, "name": "os.system"}
            edited = thread.save({**thread.load("@1"), "state/x": value})
            with pytest.raises(agent_framework.WorkflowCheckpointException):
                await storage.load(edited.id)

    stored(body)


# --- real workflows -------------------------------------------------------------------


class Asking(Executor):
    """Asks a person, and gives the answer on."""

    @handler
    async def ask(self, number: int, ctx: WorkflowContext) -> None:
        question = Question(f"what about {number}?", ["yes", "no"])
        await ctx.request_info(question, str)

    @response_handler
    async def answered(
        self, request: Question, answer: str, ctx: WorkflowContext[int, str]
    ) -> None:
        await ctx.yield_output(f"{request.text} {answer}")


def test_a_workflow_waits_for_a_person_and_goes_on_with_the_answer():
    def build(storage):
        return builder(Asking(id="ask"), storage).build()

    async def body(_, storage):
        await build(storage).run(7)
        latest = await storage.get_latest(workflow_name="wf")
        [(id_, event)] = latest.pending_request_info_events.items()
        assert (event.data.choices, event.response_type) == (["yes", "no"], str)

        workflow = build(storage)
        await workflow.run(checkpoint_id=latest.checkpoint_id)
        result = await workflow.run(responses={id_: "yes"})

        assert result.get_outputs() == ["what about 7? yes"]

    stored(body)


def test_agents_in_a_workflow_remember_what_was_said():
    def build(storage):
        first, client = agent()
        second, _ = agent()
        one, two = AgentExecutor(first, id="one"), AgentExecutor(second, id="two")
        return builder(one, storage).add_edge(one, two).build(), client

    async def body(_, storage):
        workflow, _ = build(storage)
        await workflow.run("hello")
        saved = await storage.list_checkpoints(workflow_name="wf")
        after = next(checkpoint for checkpoint in saved if "one" in checkpoint.messages)
        [passed] = after.messages["one"]
        assert isinstance(passed, WorkflowMessage)
        said = [message.text for message in passed.data.full_conversation]
        assert said == ["hello", "answer 1"]

        workflow, client = build(storage)
        result = await workflow.run(checkpoint_id=after.checkpoint_id)

        assert client.seen == []  # the first agent is not asked again
        assert result.get_outputs()[-1].text == "answer 1"

    stored(body)


def test_agents_in_a_group_chat_go_on_where_they_were():
    orchestrations = pytest.importorskip("agent_framework_orchestrations")

    def build(storage):
        clients = {}
        members = []
        for name in ("ann", "ben"):
            member, clients[name] = agent(name=name)
            members.append(member)
        chat = orchestrations.GroupChatBuilder(
            participants=members,
            selection_func=lambda state: ("ann", "ben")[state.current_round % 2],
            max_rounds=3,
            checkpoint_storage=storage,
        )
        return chat.build(), clients

    async def body(_, storage):
        workflow, clients = build(storage)
        await workflow.run("hello")
        assert [len(clients[name].seen) for name in ("ann", "ben")] == [2, 1]
        saved = await storage.list_checkpoints(workflow_name=workflow.name)

        workflow, clients = build(storage)
        middle = saved[len(saved) // 2].checkpoint_id
        await workflow.run(checkpoint_id=middle)

        assert 0 < sum(len(client.seen) for client in clients.values()) < 3

    stored(body)
    request = orchestrations.GroupChatRequestMessage("please go on")
    assert back(request) == request


def test_a_workflow_inside_of_a_workflow_is_stored_with_it():
    async def body(_, storage):
        inner, _ = chain(None, name="inner")
        nested = WorkflowExecutor(inner, id="nested")
        await builder(nested, storage, "outer").build().run(1)

        latest = await storage.get_latest(workflow_name="outer")

        assert "nested" in latest.state["_executor_state"]

    stored(body)
