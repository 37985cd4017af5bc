"""The classes that a graph declares need no permission; others still do."""

import asyncio
import dataclasses
import enum
import operator
from typing import Annotated, Any, Generic, NewType, TypedDict, TypeVar

import pydantic
import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

import holdfast
from adapters.langgraph.graphs import put, thread
from holdfast.adapters.langgraph import HoldfastSaver

T = TypeVar("T")


class Mood(enum.Enum):
    GLAD = "glad"


@dataclasses.dataclass
class Box(Generic[T]):
    content: T


class Note(pydantic.BaseModel):
    text: str
    mood: Mood = Mood.GLAD


Notes = NewType("Notes", list[Note])


class State(TypedDict, total=False):
    notes: Annotated[list[Note], operator.add]
    box: Box[Note] | None
    named: Notes
    anything: Any


@dataclasses.dataclass
class Job:
    """What a node is sent: no channel of the graph holds it."""

    box: Box[Mood]


@dataclasses.dataclass
class Whole:
    """A state that is a dataclass itself."""

    note: Note
    count: int = 0


NOTE = Note(text="one")


def noting(update):
    builder = StateGraph(State)
    builder.add_node("note", lambda _: update)
    builder.add_edge(START, "note")
    return builder


def test_the_classes_of_a_state_are_saved_and_loaded_without_a_list(tmp_path):
    update = {"notes": [NOTE], "box": Box(NOTE), "named": [NOTE]}
    with HoldfastSaver(tmp_path / "agents.db") as saver:
        graph = noting(update).compile(checkpointer=saver)
        graph.invoke({"notes": [NOTE]}, thread("t"))

    # As in another process: this saver has seen no graph before.
    anew = HoldfastSaver(tmp_path / "agents.db")
    again = noting({}).compile(checkpointer=anew)

    values = again.get_state(thread("t")).values
    assert values == {"notes": [NOTE, NOTE], "box": Box(NOTE), "named": [NOTE]}
    assert type(values["notes"][0].mood) is Mood
    assert len([*again.get_state_history(thread("t"))]) == 3
    anew.close()


def test_the_same_in_coroutines(saver):
    graph = noting({"box": Box(NOTE)}).compile(checkpointer=saver)

    async def work():
        await graph.ainvoke({"notes": []}, thread("t"))
        found = await graph.aget_state(thread("t"))
        return found.values, [s async for s in graph.aget_state_history(thread("t"))]

    values, history = asyncio.run(work())

    assert values["box"] == Box(NOTE)
    assert len(history) == 3


def test_what_a_node_is_sent_and_a_state_that_is_a_class(quick):
    builder = StateGraph(Whole)

    def work(job: Job) -> dict[str, Any]:
        return {"count": interrupt("how many?")}

    builder.add_node("plan", lambda _: {})
    builder.add_node("work", work, input_schema=Job)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda _: [Send("work", Job(Box(Mood.GLAD)))])
    graph = builder.compile(checkpointer=quick)

    graph.invoke(Whole(NOTE), thread("t"))
    values = graph.invoke(Command(resume=2), thread("t"))

    assert values == {"note": NOTE, "count": 2}


def test_a_subgraph_has_classes_of_its_own(quick):
    inner = StateGraph(State)
    inner.add_node("ask", lambda _: {"box": Box(interrupt("?"))})
    inner.add_edge(START, "ask")
    outer: Any = StateGraph(dict)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    graph = outer.compile(checkpointer=quick)

    graph.invoke({"notes": [NOTE]}, thread("t"))
    state = graph.get_state(thread("t"), subgraphs=True)

    assert state.tasks[0].state.values == {"notes": [NOTE]}


def test_a_graph_may_call_itself(quick):
    builder = StateGraph(State)

    def ask(state):
        return {"box": Box(NOTE)} if state.get("box") else graph.invoke({"box": 1})

    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=quick)

    assert graph.invoke({"notes": []}, thread("t"))["box"] == Box(NOTE)


def test_a_function_that_is_a_graph_declares_what_it_takes_and_returns(quick):
    @task
    def ask() -> str:
        return interrupt("?")

    @entrypoint(checkpointer=quick)
    def work(note: Note) -> Box[Note]:
        return Box(Note(text=note.text + ask().result()))

    work.invoke(NOTE, thread("t"))

    assert work.invoke(Command(resume="!"), thread("t")) == Box(Note(text="one!"))


def test_what_no_annotation_leads_to_is_refused(quick):
    graph = noting({"anything": Job(Box(Mood.GLAD))}).compile(checkpointer=quick)

    with pytest.raises(holdfast.Unstorable, match=r"allow=\[Job\]"):
        graph.invoke({"notes": []}, thread("t"))


def test_a_stored_name_does_not_become_a_class_of_the_graph(quick, quick_store):
    put(HoldfastSaver(quick_store, allow=[Job]), thread("t"), {"anything": Job(Box(1))})
    graph = noting({}).compile(checkpointer=quick)

    with pytest.raises(holdfast.FormatMismatch, match="Job"):
        graph.get_state(thread("t"))


def test_two_graphs_have_different_classes_of_one_name(quick):
    def graph():
        @dataclasses.dataclass
        class Local:
            n: int

        builder = StateGraph(TypedDict("Held", {"x": Local}))
        builder.add_node("n", lambda _: {"x": Local(1)})
        builder.add_edge(START, "n")
        return builder.compile(checkpointer=quick), Local

    (first, one), (second, two) = graph(), graph()
    for made in (first, second):
        made.invoke({"x": None}, thread("t"))

    assert type(first.get_state(thread("t")).values["x"]) is one
    assert type(second.get_state(thread("t")).values["x"]) is two
