"""Tools that a graph calls once: replays, edits, retries, pauses, forks, subgraphs."""

import asyncio

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.types import Command, RetryPolicy, Send, interrupt

import holdfast
from adapters.langgraph.graphs import refused, thread
from adapters.langgraph.paying import Async, Bank, Model, Sync, agent, before, say
from holdfast.adapters.langgraph import (
    HoldfastSaver,
    aonce_tool_call,
    once,
    once_tool_call,
)

T = thread("t")


@pytest.fixture(params=[Sync, Async])
def run(request):
    """Runs a graph, sync and async."""
    return request.param.invoke


@pytest.fixture
def store():
    with holdfast.open(":memory:") as store:
        yield store


@pytest.fixture
def bank():
    return Bank()


def results(state):
    return [m.content for m in state["messages"] if isinstance(m, ToolMessage)]


# --- the attack: semantic rollback ----------------------------------------------------


def test_after_time_travel_the_same_payment_is_not_made_again(saver, run, bank):
    """The model asks again with a new call id and a new reference."""
    model = Model([("bob", 5)], "done", [("bob", 5)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=saver)

    first = run(graph, say("pay bob"), T)
    second = run(graph, None, before(graph, "model", T))

    assert bank.paid == [("bob", 5)]
    assert results(first) == results(second) == ["paid bob 5, 1"]
    answer, request = second["messages"][-2], second["messages"][-3]
    assert answer.tool_call_id == request.tool_calls[0]["id"]


def test_replaying_the_step_of_the_tool_returns_its_result(saver, run, bank):
    model = Model([("bob", 5)], "done", "done again")
    graph = agent(model, [once(bank.tool(), policy="refuse")])
    graph = graph.compile(checkpointer=saver)

    run(graph, say("pay bob"), T)
    again = run(graph, None, before(graph, "tools", T))

    assert bank.paid == [("bob", 5)]
    assert results(again) == ["paid bob 5, 1"]


def test_a_changed_state_does_not_pay_again(quick, run, bank):
    model = Model([("bob", 5)], "done", [("bob", 5)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)
    run(graph, say("pay bob"), T)

    graph.update_state(before(graph, "model", T), say("be quick"))
    state = run(graph, None, T)

    assert bank.paid == [("bob", 5)]
    assert results(state) == ["paid bob 5, 1"]


def test_an_edited_call_that_means_the_same_is_not_made_again(quick, run, bank):
    model = Model([("bob", 5)], "done", "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)
    run(graph, say("pay bob"), T)
    at_tools = before(graph, "tools", T)
    asked = graph.get_state(at_tools).values["messages"][-1]
    args = {"to": "bob", "amount": 5, "ref": "another-reference-0123456789"}
    call = {"name": "pay", "args": args, "id": "edited"}

    graph.update_state(
        at_tools, {"messages": [AIMessage("", id=asked.id, tool_calls=[call])]}
    )
    state = run(graph, None, T)

    assert bank.paid == [("bob", 5)]
    assert results(state) == ["paid bob 5, 1"]


def test_an_edited_call_with_its_old_id_that_means_another_effect_is_made(quick, bank):
    model = Model([("bob", 5)], "done", "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)
    graph.invoke(say("pay bob"), T)
    at_tools = before(graph, "tools", T)
    asked = graph.get_state(at_tools).values["messages"][-1]
    [call] = asked.tool_calls
    call = {**call, "args": {**call["args"], "amount": 7}}

    graph.update_state(
        at_tools, {"messages": [AIMessage("", id=asked.id, tool_calls=[call])]}
    )
    graph.invoke(None, T)

    assert bank.paid == [("bob", 5), ("bob", 7)]


def test_an_update_together_with_a_replay_does_not_pay_again(quick, bank):
    model = Model([("bob", 5)], "done", "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)
    graph.invoke(say("pay bob"), T)
    at_tools = before(graph, "tools", T)
    asked = graph.get_state(at_tools).values["messages"][-1]
    args = {"to": "bob", "amount": 5, "ref": "0123456789abcdef0123456789abcdef"}
    call = {"name": "pay", "args": args, "id": "edited"}
    edited = {"messages": [AIMessage("", id=asked.id, tool_calls=[call])]}

    graph.invoke(Command(update=edited), at_tools)

    assert bank.paid == [("bob", 5)]


# --- what is a call of its own --------------------------------------------------------


def test_a_different_payment_after_time_travel_is_made(quick, run, bank):
    model = Model([("bob", 5)], "done", [("bob", 6)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)

    run(graph, say("pay bob"), T)
    run(graph, None, before(graph, "model", T))

    assert bank.paid == [("bob", 5), ("bob", 6)]


def test_an_equal_payment_in_a_later_turn_is_made(saver, run, bank):
    model = Model([("bob", 5)], "done", [("bob", 5)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=saver)

    run(graph, say("pay bob"), T)
    run(graph, say("pay bob again"), T)

    assert bank.paid == [("bob", 5)] * 2


def test_a_model_that_uses_its_ids_again_is_understood(quick, run, bank):
    model = Model([("bob", 5)], "done", [("bob", 6)], "done", ids=["call_0", "call_0"])
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)

    run(graph, say("pay bob"), T)
    run(graph, say("pay him more"), T)

    assert bank.paid == [("bob", 5), ("bob", 6)]


def test_equal_payments_in_one_reply_are_two_and_stay_two(saver, run, bank):
    twice = [("bob", 5), ("bob", 5)]
    model = Model(twice, "done", [*twice, ("bob", 5)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=saver)

    run(graph, say("pay bob twice"), T)
    paid = list(bank.paid)
    again = run(graph, None, before(graph, "model", T))

    assert paid == twice
    assert bank.paid == [*twice, ("bob", 5)]
    assert sorted(results(again)) == [f"paid bob 5, {n}" for n in (1, 2, 3)]


def test_the_first_of_two_equal_calls_made_the_second_is_still_made(quick, bank):
    """The first payment is made and the second fails; then the step is replayed."""
    model = Model([("bob", 5), ("bob", 5)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)
    bank.fail = lambda: bank.paid and _raise(OSError("the bank is closed"))

    with pytest.raises(OSError, match="closed"):
        graph.invoke(say("pay bob twice"), T | {"max_concurrency": 1})
    bank.fail = lambda: None
    graph.invoke(None, before(graph, "tools", T))

    assert bank.paid == [("bob", 5)] * 2


def _raise(error):
    raise error


# --- resuming and retrying ------------------------------------------------------------


def test_a_tool_before_an_interrupt_is_not_called_again_by_the_resume(saver, run, bank):
    pay = once(bank.tool())

    def node(state):
        paid = pay.invoke({"to": "bob", "amount": 5, "ref": f"{id(object())}"})
        return {"messages": [("user", f"{paid} {interrupt('Go on?')}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=saver)

    run(graph, say("go"), T)
    state = run(graph, Command(resume="yes"), T)

    assert bank.paid == [("bob", 5)]
    assert state["messages"][-1].content == "paid bob 5, 1 yes"


def test_a_function_called_twice_by_a_node_is_two_effects_also_when_resumed(
    quick, bank
):
    pay = once(bank.transfer)

    def node(state):
        for ref in (object(), object()):
            pay("bob", 5, ref=hex(id(ref)))
        interrupt("Go on?")
        pay("bob", amount=5, ref="third")

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=quick)

    graph.invoke(say("go"), T)
    graph.invoke(Command(resume="yes"), T)

    assert bank.paid == [("bob", 5)] * 3


def test_a_retried_node_does_not_pay_again(saver, run, bank):
    pay, tries = once(bank.tool()), []

    def node(state):
        pay.invoke({"to": "bob", "amount": 5, "ref": f"ref-{len(tries)}"})
        tries.append(1)
        if len(tries) < 3:
            raise OSError("try again")

    builder = StateGraph(MessagesState)
    policy = RetryPolicy(initial_interval=0.001, max_attempts=3, retry_on=OSError)
    builder.add_node("node", node, retry_policy=policy)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=saver)

    run(graph, say("go"), T)

    assert len(tries) == 3
    assert bank.paid == [("bob", 5)]


def test_a_replayed_node_that_calls_a_function_does_not_pay_again(saver, run, bank):
    pay, refs = once(bank.transfer), iter(range(100))

    def node(state):
        return {"messages": [pay("bob", 5, ref=f"{next(refs):040}") for _ in range(2)]}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=saver)

    run(graph, say("go"), T)
    state = run(graph, None, before(graph, "node", T))
    run(graph, say("go"), T)

    assert [m.content for m in state["messages"][1:]] == [
        "paid bob 5, 1",
        "paid bob 5, 2",
    ]
    assert bank.paid == [("bob", 5)] * 4


def test_a_model_inside_of_the_node_asks_again_and_nothing_is_paid_twice(quick, bank):
    """The ids of calls that are not in the state are new in every execution."""
    pay, ids = once(bank.tool()), iter("abcdef")

    def node(state):
        args = {"to": "bob", "amount": 5, "ref": f"{next(ids) * 30}"}
        call = {"type": "tool_call", "name": "pay", "args": args, "id": next(ids)}
        answer = pay.invoke(call)
        interrupt("Go on?")
        return {"messages": [AIMessage("", tool_calls=[call]), answer]}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=quick)

    graph.invoke(say("go"), T)
    state = graph.invoke(Command(resume="yes"), T)

    assert bank.paid == [("bob", 5)]
    assert results(state) == ["paid bob 5, 1"]


def test_a_tool_that_pauses_itself_is_called_when_it_is_resumed(quick, run, bank):
    @tool
    def pay(to: str, amount: int, ref: str) -> str:
        """Pay somebody, if a person agrees."""
        return bank.transfer(to, amount, ref) if interrupt("Pay?") else "no"

    graph = agent(Model([("bob", 5)], "done"), [once(pay)]).compile(checkpointer=quick)

    run(graph, say("pay bob"), T)
    state = run(graph, Command(resume=True), T)

    assert bank.paid == [("bob", 5)]
    assert results(state) == ["paid bob 5, 1"]


def test_a_payment_that_failed_is_made_by_the_next_run(quick, run, bank):
    model = Model([("bob", 5)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)
    bank.fail = lambda: _raise(OSError("the bank is closed"))

    with pytest.raises(OSError, match="closed"):
        run(graph, say("pay bob"), T)
    bank.fail = lambda: None
    run(graph, None, T)

    assert bank.paid == [("bob", 5)]


def test_a_new_input_after_a_failure_beside_a_payment_does_not_pay_again(quick, bank):
    """The state never got the result, and the model asks again."""
    model = Model([("bob", 5), ("eve", 6)], [("bob", 5)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)
    bank.fail = lambda: bank.paid and _raise(OSError("the bank is closed"))
    with pytest.raises(OSError, match="closed"):
        graph.invoke(say("pay both"), T | {"max_concurrency": 1})
    bank.fail = lambda: None

    graph.invoke(say("only bob"), T)

    assert bank.paid == [("bob", 5)]


# --- forks and policies ---------------------------------------------------------------


def test_a_fork_uses_the_payment_of_its_origin(place, bank):
    url, options = place
    with holdfast.open(url, **options) as store:
        model = Model([("bob", 5)], "done", [("bob", 5)], "done", "done")
        graph = agent(model, [once(bank.tool())])
        graph = graph.compile(checkpointer=HoldfastSaver(store))
        graph.invoke(say("pay bob"), T)
        for name, node in (("anew", "model"), ("same", "tools")):
            at = before(graph, node, T)["configurable"]["checkpoint_id"]
            store.thread("t").fork(name, at=at)

        anew = graph.invoke(None, thread("anew"))
        same = graph.invoke(None, thread("same"))

        assert bank.paid == [("bob", 5)]
        assert results(anew) == results(same) == ["paid bob 5, 1"]


def test_a_fork_at_a_call_that_took_a_payment_over_uses_it_too(store, bank):
    model = Model([("bob", 5)], "done", [("bob", 5)], "done", "done")
    graph = agent(model, [once(bank.tool())])
    graph = graph.compile(checkpointer=HoldfastSaver(store))
    graph.invoke(say("pay bob"), T)
    graph.invoke(None, before(graph, "model", T))
    at = before(graph, "tools", T, nth=1)["configurable"]["checkpoint_id"]
    store.thread("t").fork("trial", at=at)

    graph.invoke(None, thread("trial"))

    assert bank.paid == [("bob", 5)]


@pytest.mark.parametrize("policy", ["deny", "refuse", "run"])
def test_the_policy_of_a_fork_decides(bank, policy):
    with holdfast.open(":memory:") as store:
        model = Model([("bob", 5)], "done", [("bob", 5)], "done")
        graph = agent(model, [once(bank.tool())])
        graph = graph.compile(checkpointer=HoldfastSaver(store))
        graph.invoke(say("pay bob"), T)
        at = before(graph, "model", T)["configurable"]["checkpoint_id"]
        store.thread("t").fork("trial", at=at, effects=policy)

        if policy == "run":
            graph.invoke(None, thread("trial"))
        else:
            codes = {"deny": "effect_denied", "refuse": "effect_happened"}
            with refused(codes[policy]):
                graph.invoke(None, thread("trial"))

        assert len(bank.paid) == (2 if policy == "run" else 1)


def test_a_rewound_thread_uses_the_payment(bank):
    with holdfast.open(":memory:") as store:
        # The checkpoint has the model's first reply, which LangGraph uses again.
        model = Model([("bob", 5)], "done", "done")
        graph = agent(model, [once(bank.tool())])
        graph = graph.compile(checkpointer=HoldfastSaver(store))
        graph.invoke(say("pay bob"), T)

        at = before(graph, "model", T)["configurable"]["checkpoint_id"]
        store.thread("t").rewind(at)
        [behind] = store.thread("t").effects(left_behind=True)
        graph.invoke(None, T)

        assert behind.tool == "pay"
        assert bank.paid == [("bob", 5)]


def test_a_pruned_history_keeps_its_effects(saver, bank):
    model = Model([("bob", 5)], "done", [("bob", 5)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=saver)
    graph.invoke(say("pay bob"), T)

    saver.prune(["t"])
    graph.invoke(say("pay bob again"), T)

    assert bank.paid == [("bob", 5)] * 2


def test_a_copy_of_a_thread_knows_its_effects(saver, bank):
    model = Model([("bob", 5)], "done", [("bob", 5)], "done", "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=saver)
    graph.invoke(say("pay bob"), T)
    graph.invoke(None, before(graph, "model", T))
    saver.consume(T, "approval:42")

    saver.copy_thread("t", "copy")
    graph.invoke(None, before(graph, "tools", thread("copy")))

    assert bank.paid == [("bob", 5)]
    assert not saver.consume(thread("copy"), "approval:42")


# --- declarations ---------------------------------------------------------------------


def test_a_key_says_what_is_the_same(quick, bank):
    @holdfast.once(key=("to",))
    def pay(to: str, amount: int, ref: str) -> str:
        """Pay somebody."""
        return bank.transfer(to, amount, ref)

    model = Model([("bob", 5)], "done", [("bob", 6)], "done")
    graph = agent(model, [once(tool(pay))]).compile(checkpointer=quick)

    graph.invoke(say("pay bob"), T)
    graph.invoke(None, before(graph, "model", T))

    assert bank.paid == [("bob", 5)]


def test_a_repeatable_tool_is_always_called(quick, bank):
    pay = holdfast.repeatable(bank.tool().func)
    model = Model([("bob", 5)], "done", "done")
    node = ToolNode([pay], wrap_tool_call=once_tool_call)
    graph = agent(model, node).compile(checkpointer=quick)

    graph.invoke(say("look"), T)
    graph.invoke(None, before(graph, "tools", T))

    assert bank.paid == [("bob", 5)] * 2


def test_a_tool_node_makes_all_its_tools_once(saver, run, bank):
    model = Model([("bob", 5), ("eve", 6)], "done", [("bob", 5), ("eve", 6)], "done")
    node = ToolNode(
        [bank.tool()],
        wrap_tool_call=once_tool_call,
        awrap_tool_call=aonce_tool_call,
        handle_tool_errors=True,
    )
    graph = agent(model, node).compile(checkpointer=saver)

    run(graph, say("pay both"), T)
    state = run(graph, None, before(graph, "model", T))

    assert sorted(bank.paid) == [("bob", 5), ("eve", 6)]
    assert len(results(state)) == 2


def test_tools_with_injected_arguments_are_known_by_those_of_the_model(store, bank):
    @tool
    def pay(to: str, amount: int, ref: str, runtime: ToolRuntime) -> str:
        """Pay somebody."""
        return bank.transfer(to, amount, runtime.tool_call_id)

    model = Model([("bob", 5)], "done", [("bob", 5)], "done")
    graph = agent(model, [once(pay)]).compile(checkpointer=HoldfastSaver(store))

    graph.invoke(say("pay bob"), T)
    graph.invoke(None, before(graph, "model", T))

    assert bank.paid == [("bob", 5)]
    [effect] = store.thread("t").effects()
    assert effect.arguments.keys() == {"to", "amount", "ref"}


def test_an_async_tool_is_called_once(saver, bank):
    async def pay(to: str, amount: int, ref: str) -> str:
        """Pay somebody."""
        return bank.transfer(to, amount, ref)

    model = Model([("bob", 5)], "done", [("bob", 5)], "done")
    tools = [once(StructuredTool.from_function(coroutine=pay))]
    graph = agent(model, tools).compile(checkpointer=saver)

    Async.invoke(graph, say("pay bob"), T)
    state = Async.invoke(graph, None, before(graph, "model", T))

    assert bank.paid == [("bob", 5)]
    assert results(state) == ["paid bob 5, 1"]


def test_an_async_store_and_an_async_function(place, bank):
    @once
    async def pay(to: str, amount: int, ref: str) -> str:
        return bank.transfer(to, amount, ref)

    async def node(state):
        await pay("bob", 5, ref="x")
        interrupt("Go on?")

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")

    async def main():
        url, options = place
        async with HoldfastSaver.from_conn_string(url, **options) as saver:
            graph = builder.compile(checkpointer=saver)
            await graph.ainvoke(say("go"), T)
            await graph.ainvoke(Command(resume="yes"), T)

    asyncio.run(main())

    assert bank.paid == [("bob", 5)]


# --- subgraphs and sent tasks ---------------------------------------------------------


def around(inner, **options):
    builder = StateGraph(MessagesState)
    builder.add_node("inner", inner)
    builder.add_edge(START, "inner")
    return builder.compile(**options)


def test_a_subgraph_does_not_pay_again(saver, run, bank):
    model = Model([("bob", 5)], "done", [("bob", 5)], "done")
    inner = agent(model, [once(bank.tool())]).compile()
    graph = around(inner, checkpointer=saver)

    run(graph, say("pay bob"), T)
    state = run(graph, None, before(graph, "inner", T))

    assert bank.paid == [("bob", 5)]
    assert results(state) == ["paid bob 5, 1"]


def test_a_subgraph_that_pauses_goes_on_without_paying_again(saver, run, bank):
    model = Model([("bob", 5)], [("bob", 5)], "done", ids=["call_0", "call_0"])
    builder = agent(model, [once(bank.tool())])
    inner = builder.compile(interrupt_before=["tools"])
    graph = around(inner, checkpointer=saver)

    run(graph, say("pay bob twice"), T)
    run(graph, None, T)
    run(graph, None, T)

    assert bank.paid == [("bob", 5)] * 2


def test_a_fork_at_a_subgraph_does_not_pay_again(store, bank):
    """The subgraph starts again in the fork, and the model asks again."""
    model = Model([("bob", 5)], "done", [("bob", 5)], "done")
    inner = agent(model, [once(bank.tool())]).compile()
    graph = around(inner, checkpointer=HoldfastSaver(store))
    graph.invoke(say("pay bob"), T)
    at = before(graph, "inner", T)["configurable"]["checkpoint_id"]
    store.thread("t").fork("trial", at=at)

    graph.invoke(None, thread("trial"))

    assert bank.paid == [("bob", 5)]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_retried_subgraph_does_not_pay_again(quick, bank, durability):
    asking, failures = Model([("bob", 5)], [("bob", 5)]), [OSError("try again")]

    def model(state):
        if not any(isinstance(m, ToolMessage) for m in state["messages"]):
            return asking(state)
        if failures:
            raise failures.pop()
        return {"messages": [AIMessage("done")]}

    builder = StateGraph(MessagesState)
    policy = RetryPolicy(initial_interval=0.001, max_attempts=2, retry_on=OSError)
    inner = agent(model, [once(bank.tool())]).compile()
    builder.add_node("inner", inner, retry_policy=policy)
    builder.add_edge(START, "inner")
    graph = builder.compile(checkpointer=quick)

    state = graph.invoke(say("pay bob"), T, durability=durability)

    assert state["messages"][-1].content == "done"
    assert bank.paid == [("bob", 5)]


def test_a_subgraph_called_twice_by_a_node_pays_twice(quick, run, bank):
    model = Model([("bob", 5)], "done", [("bob", 5)], "done")
    inner = agent(model, [once(bank.tool())]).compile()

    def node(state):
        for _ in range(2):
            inner.invoke(say("pay bob"))

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=quick)

    run(graph, say("pay bob twice"), T)

    assert bank.paid == [("bob", 5)] * 2


def test_subgraphs_side_by_side_pay_each_for_itself(saver, run, bank):
    models = [Model([("bob", 5)], "done") for _ in range(2)]
    builder = StateGraph(MessagesState)
    for n, model in enumerate(models):
        inner = agent(model, [once(bank.tool())]).compile()
        builder.add_node(f"inner{n}", inner)
        builder.add_edge(START, f"inner{n}")
    graph = builder.compile(checkpointer=saver)

    run(graph, say("both pay bob"), T)

    assert bank.paid == [("bob", 5)] * 2


def test_a_subgraph_without_checkpoints_is_refused(quick, bank):
    inner = agent(Model([("bob", 5)]), [once(bank.tool())]).compile(checkpointer=False)
    graph = around(inner, checkpointer=quick)

    with pytest.raises(holdfast.Unsupported, match="checkpointer=False"):
        graph.invoke(say("pay bob"), T)
    assert bank.paid == []


def test_sent_tasks_pay_each_for_itself_and_once(saver, run, bank):
    pay = once(bank.tool())

    def work(task):
        pay.invoke({"to": "bob", "amount": 5, "ref": f"{id(object())}"})
        if task["n"] == 2:
            interrupt("Go on?")

    builder = StateGraph(MessagesState)
    builder.add_node("work", work)
    builder.add_conditional_edges(
        START, lambda _: [Send("work", {"n": n}) for n in range(3)], ["work"]
    )
    graph = builder.compile(checkpointer=saver)

    run(graph, say("pay bob three times"), T)
    run(graph, Command(resume="yes"), T)

    assert bank.paid == [("bob", 5)] * 3


def test_a_prebuilt_agent_that_sends_each_call_on_its_own(saver, run, bank):
    twice = [("bob", 5), ("bob", 5)]
    model = Model(twice, "done", twice, "done")

    def sent(state):
        calls = state["messages"][-1].tool_calls
        return [Send("tools", [call]) for call in calls]

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", ToolNode([once(bank.tool())]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", sent, ["tools"])
    builder.add_edge("tools", "model")
    graph = builder.compile(checkpointer=saver)

    run(graph, say("pay bob twice"), T)
    run(graph, None, before(graph, "model", T))

    assert bank.paid == twice


def test_the_functional_api_calls_once(saver, bank):
    pay = once(bank.transfer)

    @task
    def paying(ref):
        return pay("bob", 5, ref)

    @entrypoint(checkpointer=saver)
    def workflow(order):
        pay("eve", 6, f"{id(object())}")
        paid = [paying(f"{n}" * 40).result() for n in range(2)]
        return [*paid, interrupt("Go on?")]

    workflow.invoke("order", T)
    found = workflow.invoke(Command(resume="yes"), T)

    assert bank.paid == [("eve", 6), ("bob", 5), ("bob", 5)]
    assert found == ["paid bob 5, 2", "paid bob 5, 3", "yes"]


def test_a_graph_inside_of_a_tool_has_effects_of_its_own(quick, bank):
    """Its thread is another one, and so are the rules for its checkpoints."""
    model = Model([("bob", 5)], "done", [("bob", 5)], "done")
    helper = agent(model, [once(bank.tool())]).compile(checkpointer=quick)

    def node(state):
        helper.invoke(say("pay bob"), thread("helper"))
        interrupt("Go on?")

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=quick)

    graph.invoke(say("go"), T)

    assert bank.paid == [("bob", 5)]


# --- durability -----------------------------------------------------------------------


def test_saving_at_the_end_equal_payments_in_later_turns_are_made(saver, run, bank):
    model = Model([("bob", 5)], [("bob", 5)], "done", [("bob", 5)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=saver)

    run(graph, say("pay bob twice"), T, durability="exit")
    run(graph, say("and again"), T, durability="exit")

    assert bank.paid == [("bob", 5)] * 3


def test_saving_at_the_end_a_replay_does_not_pay_again(quick, run, bank):
    model = Model("hello", [("bob", 5)], "done", [("bob", 5)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)
    run(graph, say("hello"), T, durability="exit")
    start = graph.get_state(T).config

    run(graph, say("pay bob"), T, durability="exit")
    run(graph, say("pay bob"), start, durability="exit")

    assert bank.paid == [("bob", 5)]


def test_saving_at_the_end_a_failed_run_is_resumed_without_paying_again(quick, bank):
    model = Model([("bob", 5)], [("eve", 6)], "done")
    graph = agent(model, [once(bank.tool())]).compile(checkpointer=quick)
    bank.fail = lambda: bank.paid and _raise(OSError("the bank is closed"))
    with pytest.raises(OSError, match="closed"):
        graph.invoke(say("pay both"), T, durability="exit")
    bank.fail = lambda: None

    graph.invoke(None, T, durability="exit")

    assert bank.paid == [("bob", 5), ("eve", 6)]


def test_saving_at_the_end_a_node_may_look_at_its_thread(quick, bank):
    pay = once(bank.transfer)

    def node(state, config):
        pay("bob", 5, "x")
        graph.get_state(config)

    builder = StateGraph(MessagesState)
    builder.add_node("first", node)
    builder.add_node("second", node)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    graph = builder.compile(checkpointer=quick)

    graph.invoke(say("pay bob twice"), T, durability="exit")
    graph.invoke(say("and twice more"), T, durability="exit")

    assert bank.paid == [("bob", 5)] * 4


def test_a_run_that_cannot_save_pays_nothing(quick, bank):
    """Another run has saved meanwhile; this one would pay for a state that is lost."""
    model = Model([("bob", 5)], "done")

    def meanwhile(state):
        rival.invoke(say("hello"), T)
        return model(state)

    rival = agent(Model("hello"), [once(bank.tool())]).compile(checkpointer=quick)
    graph = agent(meanwhile, [once(bank.tool())]).compile(checkpointer=quick)

    with refused("head_moved"):
        graph.invoke(say("pay bob"), T)

    assert bank.paid == []


# --- where it cannot work -------------------------------------------------------------


def test_outside_of_a_graph_nothing_is_called(bank):
    pay = once(bank.transfer)

    with pytest.raises(holdfast.Unsupported, match="HoldfastSaver"):
        pay("bob", 5, "x")

    assert bank.paid == []


def test_arguments_that_cannot_be_stored_reach_the_developer(quick, bank):
    pay = once(bank.transfer)

    @tool
    def wrapped(to: str, amount: int, ref: str) -> str:
        """Pay somebody."""
        return pay(to, object(), ref)

    wrapped.name = "pay"
    node = ToolNode([wrapped], handle_tool_errors=True)
    graph = agent(Model([("bob", 5)]), node).compile(checkpointer=quick)

    with pytest.raises(holdfast.Unstorable, match="amount"):
        graph.invoke(say("pay bob"), T)

    assert bank.paid == []


def test_a_result_that_cannot_be_stored_is_repeated_as_its_text(quick):
    class Receipt:
        def __str__(self):
            return "a receipt"

    pay, seen = once(Receipt), []

    def node(state):
        seen.append(str(pay()))
        interrupt("Go on?")

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=quick)

    graph.invoke(say("go"), T)
    graph.invoke(Command(resume="yes"), T)

    assert seen == ["a receipt", "a receipt"]


def test_a_tool_outside_of_a_run_is_refused(quick, bank):
    config = thread("t", __pregel_checkpointer=quick)

    with pytest.raises(holdfast.Unsupported, match="from a node"):
        once(bank.tool()).invoke({"to": "bob", "amount": 5, "ref": "x"}, config)

    assert bank.paid == []


def test_a_graph_with_another_saver_is_refused(bank):
    model = Model([("bob", 5)])
    node = ToolNode([once(bank.tool())], handle_tool_errors=True)
    graph = agent(model, node).compile(checkpointer=InMemorySaver())

    with pytest.raises(holdfast.Unsupported, match="HoldfastSaver"):
        graph.invoke(say("pay bob"), T)

    assert bank.paid == []


def test_a_sync_function_in_an_async_node_does_not_stop_the_event_loop(tmp_path, bank):
    pay = once(bank.transfer)

    async def node(state):
        pay("bob", 5, "x")

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    with HoldfastSaver(str(tmp_path / "a.db")) as saver:
        graph = builder.compile(checkpointer=saver)
        with pytest.raises(holdfast.Unsupported, match="async def"):
            Async.invoke(graph, say("go"), T)

    assert bank.paid == []
