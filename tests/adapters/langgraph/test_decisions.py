"""What people decide: approvals that are used up, unknown outcomes, and undoing."""

import asyncio

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.config import get_config
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

import holdfast
from adapters.langgraph.graphs import refused, thread
from adapters.langgraph.paying import Async, Bank, Model, Sync, agent, before, say
from holdfast.adapters.langgraph import once
from holdfast.effects import Compensation

T = thread("t")


@pytest.fixture(params=[Sync, Async])
def run(request):
    """Runs a graph, sync and async."""
    return request.param.invoke


@pytest.fixture
def bank():
    return Bank()


# --- the attack: revived authority ----------------------------------------------------


def approving(saver, bank, amounts):
    """A graph that decides on an amount, asks for an approval, and pays."""

    @once(key=("amount",))
    def pay(amount: int, approval: str) -> str:
        if not saver.consume(get_config(), f"approval:{approval}"):
            return "this approval was used before"
        return bank.transfer("bob", amount, approval)

    def decide(state):
        return {"messages": [("assistant", str(amounts.pop(0)))]}

    def approved(state):
        amount = int(state["messages"][-1].content)
        answer = interrupt(f"Pay {amount}?")
        return {"messages": [("assistant", pay(amount, answer["approval"]))]}

    builder = StateGraph(MessagesState)
    builder.add_node("decide", decide)
    builder.add_node("approved", approved)
    builder.add_edge(START, "decide")
    builder.add_edge("decide", "approved")
    return builder.compile(checkpointer=saver)


def test_an_approval_used_before_a_step_back_does_not_pay_again(saver, run, bank):
    """After the step back the agent decides otherwise, and has the old approval."""
    graph = approving(saver, bank, [5, 500])
    run(graph, say("pay bob"), T)
    run(graph, Command(resume={"approval": "42"}), T)

    run(graph, None, before(graph, "decide", T))
    state = run(graph, Command(resume={"approval": "42"}), T)

    assert bank.paid == [("bob", 5)]
    assert state["messages"][-1].content == "this approval was used before"


def test_a_new_approval_after_a_step_back_pays(quick, run, bank):
    graph = approving(quick, bank, [5, 500])
    run(graph, say("pay bob"), T)
    run(graph, Command(resume={"approval": "42"}), T)

    run(graph, None, before(graph, "decide", T))
    run(graph, Command(resume={"approval": "43"}), T)

    assert bank.paid == [("bob", 5), ("bob", 500)]


def test_an_approval_is_used_up_for_the_forks_of_a_thread(place, bank):
    url, options = place
    with holdfast.open(url, **options) as store:
        store.thread("t").save({"log": []})
        store.thread("t").fork("trial")

        assert store.thread("t").consume("approval:42")
        assert not store.thread("trial").consume("approval:42")


def test_an_approval_is_used_up_by_one_caller_sync_or_async(saver):
    found = [
        saver.consume(T, "approval:42"),
        asyncio.run(saver.aconsume(T, "approval:42")),
        asyncio.run(saver.aconsume(T, "approval:43")),
        saver.consume(T, "approval:43"),
        saver.consume(thread("other"), "approval:42"),
    ]

    assert found == [True, False, True, False, True]


# --- unknown outcomes -----------------------------------------------------------------


class Killed(BaseException):
    """Ends a run as a kill does: nothing is recorded any more."""


def killed():
    raise Killed


def interrupted_payment(saver, bank, *replies):
    """A graph whose process ended inside of a payment."""
    node = ToolNode([once(bank.tool())], handle_tool_errors=True)
    graph = agent(Model([("bob", 5)], *replies), node).compile(checkpointer=saver)
    bank.fail = killed
    with pytest.raises(Killed):
        graph.invoke(say("pay bob"), T)
    bank.fail = lambda: None
    return graph


def test_an_unknown_outcome_reaches_the_developer_not_the_model(saver, run, bank):
    graph = interrupted_payment(saver, bank)

    with refused("call_interrupted") as caught:
        run(graph, None, T)

    assert "saver.unknown(config)" in str(caught.value)
    assert bank.paid == []


def test_an_unknown_outcome_is_not_forgotten_by_a_step_back(quick, run, bank):
    graph = interrupted_payment(quick, bank, [("bob", 5)])

    with refused("call_interrupted"):
        run(graph, None, before(graph, "model", T))

    assert bank.paid == []


def test_an_unknown_outcome_is_not_forgotten_by_a_new_input(quick, run, bank):
    graph = interrupted_payment(quick, bank, [("bob", 5)])

    with refused("call_interrupted"):
        run(graph, say("pay bob, please"), T)

    assert bank.paid == []


def test_a_person_says_what_a_call_returned(saver, run, bank):
    graph = interrupted_payment(saver, bank, "done")

    [effect] = saver.unknown(T)
    saver.resolve(effect, "paid bob 5, says the bank")
    state = run(graph, None, T)

    assert bank.paid == []
    assert state["messages"][-2].content == "paid bob 5, says the bank"
    assert saver.unknown(T) == []


def test_a_person_says_that_a_call_had_no_effect(quick, bank):
    graph = interrupted_payment(quick, bank, "done")

    async def decide():
        [effect] = await quick.aunknown(T)
        await quick.aretry(effect)
        return await graph.ainvoke(None, T)

    asyncio.run(decide())

    assert bank.paid == [("bob", 5)]


def test_only_a_call_with_an_unknown_outcome_is_decided(quick, bank):
    interrupted_payment(quick, bank, "done")
    [effect] = quick.unknown(T)
    asyncio.run(quick.aresolve(effect, "paid"))
    known = holdfast.Effect(
        **{f: getattr(effect, f) for f in effect.__struct_fields__}
        | {"status": "completed"}
    )

    with refused("call_ended"):
        quick.retry(known)
    assert quick.unknown(thread("nothing")) == []


# --- undoing --------------------------------------------------------------------------


def test_what_was_left_behind_is_undone_newest_first(saver, bank):
    undone = []
    pay = once(bank.tool(), undo=lambda e: undone.append(e.arguments["to"]))
    model = Model([("bob", 5)], [("eve", 6)], "done", "never mind")
    graph = agent(model, [pay]).compile(checkpointer=saver)
    graph.invoke(say("pay both"), T)

    graph.invoke(None, before(graph, "model", T))
    report = saver.compensate(T, [pay])

    assert undone == ["eve", "bob"]
    assert [e.arguments["to"] for e in report.undone] == ["eve", "bob"]
    assert saver.compensate(T, [pay]) == Compensation()


def test_what_cannot_be_undone_is_listed(quick, bank):
    pay = once(bank.tool())
    model = Model([("bob", 5)], "done", "never mind")
    graph = agent(model, [pay]).compile(checkpointer=quick)
    graph.invoke(say("pay bob"), T)

    graph.invoke(None, before(graph, "model", T))
    report = quick.compensate(T, [pay])

    assert [e.tool for e in report.kept] == ["pay"]


def test_an_async_undo_is_awaited(quick, bank):
    undone = []

    async def cancel(effect):
        undone.append(effect.result)

    @tool
    @holdfast.once(undo=cancel)
    def pay(to: str, amount: int, ref: str) -> str:
        """Pay somebody."""
        return bank.transfer(to, amount, ref)

    model = Model([("bob", 5)], "done", "never mind")
    graph = agent(model, [once(pay)]).compile(checkpointer=quick)
    graph.invoke(say("pay bob"), T)
    graph.invoke(None, before(graph, "model", T))

    with pytest.raises(holdfast.Unsupported, match="acompensate"):
        quick.compensate(T, [pay])
    asyncio.run(quick.acompensate(T, [pay]))

    assert undone == ["paid bob 5, 1"]


def test_an_undone_payment_is_made_again_if_it_is_asked_for(quick, bank):
    pay = once(bank.tool(), undo=lambda _: bank.paid.clear())
    model = Model([("bob", 5)], "done", "never mind", [("bob", 5)], "done")
    graph = agent(model, [pay]).compile(checkpointer=quick)
    graph.invoke(say("pay bob"), T)
    graph.invoke(None, before(graph, "model", T))
    quick.compensate(T, [pay])

    state = graph.invoke(say("pay bob after all"), T)

    assert bank.paid == [("bob", 5)]
    assert isinstance(state["messages"][-2], ToolMessage)
