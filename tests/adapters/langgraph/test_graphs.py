"""Real graphs on the saver: loops, branches, subgraphs, people who are asked."""

import asyncio

import pytest
from langgraph.types import Command

import holdfast
from adapters.langgraph import graphs
from adapters.langgraph.graphs import thread
from holdfast.adapters.langgraph import HoldfastSaver

DURABILITIES = ["sync", "async", "exit"]


def test_a_conversation_goes_on_where_it_was(saver):
    graph = graphs.chat().compile(checkpointer=saver)

    graph.invoke(graphs.say("hello"), thread("t"))
    state = graph.invoke(graphs.say("again"), thread("t"))

    assert graphs.texts(state) == [
        "hello",
        "You said: hello",
        "again",
        "You said: again",
    ]


def test_a_conversation_goes_on_in_another_process_on_the_same_file(tmp_path):
    path = str(tmp_path / "agents.db")
    with HoldfastSaver(path) as saver:
        graph = graphs.chat().compile(checkpointer=saver)
        graph.invoke(graphs.say("hello"), thread("t"))

    with HoldfastSaver(path) as saver:
        graph = graphs.chat().compile(checkpointer=saver)
        state = graph.invoke(graphs.say("again"), thread("t"))

    assert len(state["messages"]) == 4


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_loop_saves_every_turn_of_it(saver, durability):
    graph = graphs.counting(until=5).compile(checkpointer=saver)

    graph.invoke({"log": ["go"]}, thread("t"), durability=durability)

    assert graph.get_state(thread("t")).values["count"] == 5
    counts = [s.values.get("count") for s in graph.get_state_history(thread("t"))]
    assert counts == ([5] if durability == "exit" else [5, 4, 3, 2, 1, None, None])


@pytest.mark.parametrize("durability", DURABILITIES)
def test_parallel_tasks_are_joined(saver, durability):
    graph = graphs.spreading().compile(checkpointer=saver)

    state = graph.invoke({"log": []}, thread("t"), durability=durability)

    assert state["log"] == ["plan", "a", "b", "c", "join"]
    assert graph.get_state(thread("t")).values == state


def test_of_parallel_tasks_only_the_one_that_failed_is_run_again(saver):
    ran = []
    builder = graphs.spreading()

    def work(task):
        ran.append(task["name"])
        if task["name"] == "b" and ran.count("b") == 1:
            # LangGraph drops what has not come back when one of them fails.
            while len({w[0] for w in saver.get_tuple(thread("t")).pending_writes}) < 2:
                pass
            raise ValueError("out of luck")
        return {"log": [task["name"]]}

    builder.nodes["work"].runnable.func = work
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="out of luck"):
        graph.invoke({"log": []}, thread("t"), durability="sync")

    state = graph.invoke(None, thread("t"), durability="sync")

    assert state["log"] == ["plan", "a", "b", "c", "join"]
    assert sorted(ran) == ["a", "b", "b", "c"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_person_is_asked_and_answers(saver, durability):
    graph = graphs.asking().compile(checkpointer=saver)

    asked = graph.invoke({"log": []}, thread("t"), durability=durability)
    waiting = graph.get_state(thread("t"))
    answered = graph.invoke(Command(resume="yes"), thread("t"), durability=durability)

    assert asked["__interrupt__"][0].value == "May I?"
    assert waiting.next == ("ask",)
    assert waiting.tasks[0].interrupts == tuple(asked["__interrupt__"])
    assert answered["log"] == ["before", "yes", "after"]
    assert graph.get_state(thread("t")).next == ()


@pytest.mark.parametrize("checkpointer", [None, True], ids=["a call", "with memory"])
@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_subgraph_asks_and_goes_on(saver, durability, checkpointer):
    graph = graphs.nested(checkpointer).compile(checkpointer=saver)

    graph.invoke({"log": []}, thread("t"), durability=durability)
    waiting = graph.get_state(thread("t"), subgraphs=True)
    state = graph.invoke(Command(resume="yes"), thread("t"), durability=durability)

    assert waiting.tasks[0].state.next == ("ask",)
    assert waiting.tasks[0].state.values == {"log": ["first", "before"]}
    assert state["log"] == ["first", "first", "before", "yes", "after", "last"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_step_that_is_repeated_finds_its_subgraph_as_it_was_before(saver, durability):
    graph = graphs.nested(checkpointer=True).compile(checkpointer=saver)
    graph.invoke({"log": []}, thread("t"), durability=durability)

    for _ in range(2):
        graph.invoke(None, graph.get_state(thread("t")).config, durability="sync")
    state = graph.invoke(Command(resume="yes"), thread("t"))

    assert state["log"] == ["first", "first", "before", "yes", "after", "last"]


def test_namespaces_of_subgraphs_are_threads_below_their_thread(saver):
    graph = graphs.nested().compile(checkpointer=saver)

    graph.invoke({"log": []}, thread("t"))

    found = {item.config["configurable"]["checkpoint_ns"] for item in saver.list(None)}
    [inner] = found - {""}
    assert inner.startswith("inner:")


def test_a_run_can_begin_again_at_an_earlier_checkpoint(saver):
    graph = graphs.counting(until=3).compile(checkpointer=saver)
    graph.invoke({"log": ["go"]}, thread("t"))
    history = list(graph.get_state_history(thread("t")))
    [second] = [state for state in history if state.values.get("count") == 2]

    graph.invoke(None, second.config)

    newest = graph.get_state(thread("t"))
    assert newest.values["log"] == ["go", "0", "1", "2"]
    assert newest.config != history[0].config
    everything = [s.config for s in graph.get_state_history(thread("t"))]
    assert history[0].config in everything


def test_state_can_be_updated_here_and_at_an_earlier_checkpoint(saver):
    graph = graphs.asking().compile(checkpointer=saver)
    graph.invoke({"log": []}, thread("t"))
    waiting = graph.get_state(thread("t"))

    graph.update_state(thread("t"), {"log": ["told"]}, as_node="ask")
    finished = graph.invoke(None, thread("t"))
    graph.update_state(waiting.config, {"log": ["otherwise"]}, as_node="ask")
    branched = graph.invoke(None, thread("t"))

    assert finished["log"] == ["before", "told", "after"]
    assert branched["log"][-2:] == ["otherwise", "after"]


def test_a_checkpoint_can_be_copied_in_place(saver):
    graph = graphs.chat().compile(checkpointer=saver)
    graph.invoke(graphs.say("hello"), thread("t"))
    before = graph.get_state(thread("t"))

    graph.update_state(thread("t"), None, as_node="__copy__")

    copied = graph.get_state(thread("t"))
    assert copied.values == before.values
    assert copied.metadata["source"] == "fork"
    assert copied.parent_config == before.parent_config


@pytest.mark.parametrize("durability", DURABILITIES)
def test_the_same_object_serves_runs_that_are_awaited(place, durability):
    url, options = place

    async def talk():
        async with HoldfastSaver.from_conn_string(url, **options) as saver:
            graph = graphs.nested().compile(checkpointer=saver)
            await graph.ainvoke({"log": []}, thread("t"), durability=durability)
            answer = Command(resume="yes")
            state = await graph.ainvoke(answer, thread("t"), durability=durability)
            history = [s async for s in graph.aget_state_history(thread("t"))]
            blocking = await asyncio.to_thread(graph.get_state, thread("t"))
            return state, history, blocking

    state, history, blocking = asyncio.run(talk())

    assert state["log"] == ["first", "first", "before", "yes", "after", "last"]
    assert history[0].values == state == blocking.values


def test_awaited_calls_work_over_a_store_that_blocks(saver):
    graph = graphs.chat().compile(checkpointer=saver)

    async def talk():
        await graph.ainvoke(graphs.say("hello"), thread("t"))
        return [item async for item in saver.alist(thread("t"))]

    listed = asyncio.run(talk())

    assert listed == list(saver.list(thread("t")))
    assert len(graph.get_state(thread("t")).values["messages"]) == 2


def test_many_conversations_at_once_do_not_mix(place):
    url, options = place

    async def talk():
        async with HoldfastSaver.from_conn_string(url, **options) as saver:
            graph = graphs.chat().compile(checkpointer=saver)
            return await asyncio.gather(
                *(graph.ainvoke(graphs.say(f"{n}"), thread(f"t{n}")) for n in range(20))
            )

    states = asyncio.run(talk())

    assert [graphs.texts(s) for s in states] == [
        [f"{n}", f"You said: {n}"] for n in range(20)
    ]


def test_a_store_that_is_awaited_says_what_to_call_where_it_cannot_be_waited_for(
    server, schema
):
    async def wait():
        async with HoldfastSaver.from_conn_string(server, schema=schema) as saver:
            saver.get_tuple(thread("t"))

    with pytest.raises(holdfast.Unsupported, match="begins with 'a'"):
        asyncio.run(wait())


def test_threads_are_ordinary_threads(tmp_path):
    path = str(tmp_path / "agents.db")
    with HoldfastSaver(path) as saver:
        graph = graphs.chat().compile(checkpointer=saver)
        graph.invoke(graphs.say("hello"), thread("support-4812"))

    with holdfast.open(path) as store:
        chat = store.thread("support-4812")
        [asked, answered] = chat.load()["messages"]
        difference = chat.diff("@~1", "@")

    assert (asked["role"], asked["content"]) == ("user", "hello")
    assert (answered["role"], answered["content"]) == ("assistant", "You said: hello")
    assert '+ messages[1]  {"role": "assistant", "content": "You' in str(difference)


def test_messages_are_found_by_their_text(place):
    url, options = place
    with holdfast.open(url, **options) as store:
        graph = graphs.chat().compile(checkpointer=HoldfastSaver(store))
        graph.invoke(graphs.say("the zebra crossed"), thread("t"))
        graph.invoke(graphs.say("the walrus swam"), thread("t"))

        answered, asked = store.search("zebra")

    assert (answered.thread, answered.position) == ("t", 1)
    assert (asked.role, asked.snippet) == ("user", "the zebra crossed")


def test_a_fork_of_a_thread_is_a_thread_to_go_on_with(quick, quick_store):
    graph = graphs.chat().compile(checkpointer=quick)
    graph.invoke(graphs.say("hello"), thread("t"))
    graph.invoke(graphs.say("again"), thread("t"))

    quick_store.thread("t").fork("what-if", at="@~3")
    state = graph.invoke(graphs.say("or"), thread("what-if"))

    assert graphs.texts(state) == ["hello", "You said: hello", "or", "You said: or"]
    assert len(graph.get_state(thread("t")).values["messages"]) == 4
    assert len(list(graph.get_state_history(thread("what-if")))) == 6


def test_what_was_undone_is_undone_for_the_graph_too(quick, quick_store):
    graph = graphs.chat().compile(checkpointer=quick)
    graph.invoke(graphs.say("hello"), thread("t"))
    graph.invoke(graphs.say("never mind"), thread("t"))

    quick_store.thread("t").rewind("@~3")
    state = graph.invoke(graphs.say("instead"), thread("t"))

    assert graphs.texts(state)[2:] == ["instead", "You said: instead"]


def test_what_was_appended_by_hand_is_there_for_the_graph(quick, quick_store):
    graph = graphs.chat().compile(checkpointer=quick)
    graph.invoke(graphs.say("hello"), thread("t"))
    messages = quick_store.thread("t").load()["messages"]

    added = {**messages[0], "id": "x", "content": "by hand"}
    quick_store.thread("t").append(messages=[added])
    state = graph.invoke(graphs.say("again"), thread("t"))

    assert graphs.texts(state)[2:] == ["by hand", "again", "You said: again"]


def test_the_history_of_a_fork_names_the_fork(place):
    """Otherwise going back in a fork would go back in the thread it was made from."""
    url, options = place
    with holdfast.open(url, **options) as store:
        graph = graphs.chat().compile(checkpointer=HoldfastSaver(store))
        graph.invoke(graphs.say("hello"), thread("t"))
        store.thread("t").fork("what if", at="@2")
        fork = thread("what if")

        graph.invoke(None, fork)
        history = list(graph.get_state_history(fork))
        state = graph.invoke(None, history[-1].config)

        assert {s.config["configurable"]["thread_id"] for s in history} == {"what if"}
        assert graphs.texts(state) == ["hello", "You said: hello"]
        assert len(list(graph.get_state_history(thread("t")))) == 3
