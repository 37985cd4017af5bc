"""Approvals are used once: going back does not bring them back to life."""

import asyncio

import pytest
from agents import Agent, Runner, RunState, function_tool
from agents.exceptions import UserError
from agents.tracing import set_tracing_disabled

import holdfast
from adapters.openai_agents.bank import Bank, Cut, receipts, refused, wants
from adapters.openai_agents.scripted_model import Scripted, calls, says
from adapters.openai_agents.sessions import VERSION, opened, output, talk, user
from holdfast.adapters.openai_agents import HoldfastSession

set_tracing_disabled(True)


class Desk:
    """A bank whose payments need an approval, by a tool made once or a plain one."""

    def __init__(self, *, once=True, **declared):
        self.bank, self.once = Bank(**declared), once

    def agent(self, session, *replies, **options):
        tool = self.bank.tool(needs_approval=True)
        if self.once:
            tool = session.once(tool, **self.bank.declared, **options)
        return Agent(name="desk", model=Scripted(*replies), tools=[tool])

    async def pause(self, session, *replies, approved=False):
        """Run up to the approval, and save the run, with the approval if wanted."""
        agent = self.agent(session, list(replies))
        state = (await Runner.run(agent, "Pay.", session=session)).to_state()
        if approved:
            approve(state)
        await session.save_run(state)
        return (await session.history())[0]

    async def resume(self, session, decide=None, **options):
        """Load the run, decide about it, and go on; gives the result."""
        agent = self.agent(session, says("done"), **options)
        state = await session.load_run(agent)
        if decide:
            decide(state)
        return await Runner.run(agent, state, session=session)


def approve(state):
    for item in state.get_interruptions():
        state.approve(item)


def reject(state):
    for item in state.get_interruptions():
        state.reject(item)


# --- the second attack: a used approval is revived ------------------------------------


@pytest.mark.parametrize("api", ["sync", "async"])
@pytest.mark.parametrize("approved", [True, False])
def test_a_fork_that_may_pay_cannot_pay_with_a_used_approval(approved, api, place):
    async def body(session):
        desk = Desk()
        paused = await desk.pause(session, wants("a"), approved=approved)
        await desk.resume(session, approve)
        fork = await session.fork("fork", at=paused, effects="run")

        code = await refused(desk.resume(fork, None if approved else approve))

        assert code == "approval_used"
        assert await refused(desk.resume(fork, approve)) == "approval_used"
        assert desk.bank.paid == ["a"]
        assert receipts(await fork.get_items()) == []

    talk(body, place, api)


async def rewound(session, paused):
    await session.rewind(paused)
    return session


async def undone(session, _paused):
    while receipts(await session.get_items()):
        await session.undo()
    return session


async def forked(session, paused):
    return await session.fork("fork", at=paused)


@pytest.mark.parametrize("back", [rewound, undone, forked])
def test_a_stored_approval_does_not_let_a_plain_tool_run_again(back, place):
    async def body(session):
        desk = Desk(once=False)
        paused = await desk.pause(session, wants("a"), approved=True)
        assert not (await desk.resume(session)).interruptions
        other = await back(session, paused)

        result = await desk.resume(other)

        assert [item.name for item in result.interruptions] == ["pay"]
        assert desk.bank.paid == ["a"]

    talk(body, place, "async")


@pytest.mark.parametrize("in_transaction", [True, False])
def test_a_restored_agent_does_not_have_its_used_approvals(in_transaction, place):
    async def main():
        async with opened(place, "async") as store:
            await store.agents.save(holdfast.Agent(id="clerk"))
            session = HoldfastSession("chat", store, agent="clerk")
            desk = Desk(once=False)
            await desk.pause(session, wants("a"), approved=True)
            kept = await store.agents.checkpoint("clerk")
            if in_transaction:
                async with session.transaction():
                    await desk.resume(session)
            else:
                await desk.resume(session)
            await store.agents.restore("clerk", kept.id)

            assert (await desk.resume(session)).interruptions
            assert desk.bank.paid == ["a"]

    asyncio.run(main())


@pytest.mark.parametrize("once", [True, False])
def test_an_approval_that_was_not_used_stays(once):
    async def body(session):
        desk = Desk(once=once)
        paused = await desk.pause(session, wants("a"), approved=True)
        await session.add_items([user("are you there?")])
        await session.rewind(paused)

        assert (await desk.resume(session)).final_output == "done"
        assert desk.bank.paid == ["a"]

    talk(body)


@pytest.mark.parametrize("once", [True, False])
def test_after_going_back_a_call_can_be_rejected(once):
    async def body(session):
        desk = Desk(once=once)
        paused = await desk.pause(session, wants("a"), approved=True)
        await desk.resume(session)
        fork = await session.fork("fork", at=paused, effects="run")

        assert (await desk.resume(fork, reject)).final_output == "done"
        assert desk.bank.paid == ["a"]

    talk(body)


def test_a_rejection_uses_no_approval():
    async def body(session):
        desk = Desk()
        paused = await desk.pause(session, wants("a"))
        await desk.resume(session, reject)
        await session.rewind(paused)

        await desk.resume(session, approve)

        assert desk.bank.paid == ["a"]

    talk(body)


def test_a_result_that_is_taken_over_needs_no_approval():
    async def body(session):
        desk = Desk()
        paused = await desk.pause(session, wants("a"), approved=True)
        await desk.resume(session)

        for other in (await rewound(session, paused), await forked(session, paused)):
            assert (await desk.resume(other)).final_output == "done"
            assert receipts(await other.get_items()) == ["receipt a"]
        assert desk.bank.paid == ["a"]

    talk(body)


def test_a_call_that_failed_may_be_made_again_with_its_approval():
    async def body(session):
        desk = Desk()
        desk.bank.fails = 1
        tool = desk.bank.tool(needs_approval=True, failure_error_function=None)
        model = Scripted(wants("a"), says("done"))
        agent = Agent(name="desk", model=model, tools=[session.once(tool)])
        result = await Runner.run(agent, "Pay.", session=session)
        await session.save_run(result.to_state())
        [paused, *_] = await session.history()

        async def resume():
            state = await session.load_run(agent)
            approve(state)
            return await Runner.run(agent, state, session=session)

        with pytest.raises(Exception, match="the bank is closed"):
            await resume()
        if await session.load_run(agent) is None:
            await session.rewind(paused)
        await resume()

        assert desk.bank.paid == ["a"]

    talk(body)


def test_a_payment_with_a_used_approval_is_made_if_one_says_so():
    async def body(session):
        desk = Desk()
        paused = await desk.pause(session, wants("a"))
        await desk.resume(session, approve)
        fork = await session.fork("fork", at=paused, effects="run")

        await desk.resume(fork, approve, again=True)

        assert desk.bank.paid == ["a", "a"]

    talk(body)


def test_an_approval_of_long_ids_is_one_of_its_own():
    async def body(session):
        desk = Desk()
        ids = ["x" * 390, "x" * 391, "\u00e9" * 100]
        replies = [wants(str(n), to=str(n), id=id_) for n, id_ in enumerate(ids)]
        paused = await desk.pause(session, *replies)
        await desk.resume(session, approve)
        fork = await session.fork("fork", at=paused, effects="run")

        assert await refused(desk.resume(fork, approve)) == "approval_used"
        assert sorted(desk.bank.paid) == ["0", "1", "2"]

    talk(body)


# --- runs that were stored elsewhere, or answered by others ---------------------------


def test_an_old_state_of_a_run_does_not_make_its_call_again():
    async def body(session):
        desk = Desk()
        agent = desk.agent(session, wants("a"), says("done"), says("done again"))
        result = await Runner.run(agent, "Pay.", session=session)
        kept = result.to_state().to_string()
        for _ in range(2):
            state = await RunState.from_string(agent, kept)
            approve(state)
            await Runner.run(agent, state, session=session)

        assert desk.bank.paid == ["a"]

    talk(body)


def test_equal_payments_that_wait_together_are_both_made():
    async def body(session):
        desk = Desk()
        agent = desk.agent(session, [wants("a"), wants("b")], says("done"))
        state = (await Runner.run(agent, "Pay.", session=session)).to_state()
        approve(state)
        await Runner.run(agent, state, session=session)
        assert sorted(desk.bank.paid) == ["a", "b"]

        await desk.pause(session, wants("c"), wants("d"))
        await session.add_items([user("are you there?")])
        await desk.resume(session, approve)
        assert sorted(desk.bank.paid) == ["a", "b", "c", "d"]

    talk(body)


async def cut_off(desk, session):
    """The process ends within the payments of a run."""
    desk.bank.cut = True
    with pytest.raises(Cut):
        await desk.resume(session, approve)
    desk.bank.cut = False


def test_a_run_goes_on_with_the_result_of_a_call_that_was_resolved():
    async def body(session):
        desk = Desk()
        await desk.pause(session, wants("a"))
        await cut_off(desk, session)
        assert await refused(desk.resume(session, approve)) == "call_interrupted"
        await session.resolve("call_a", "it was paid")

        assert (await desk.resume(session, approve)).final_output == "done"

        assert desk.bank.paid == ["a"]
        assert receipts(await session.get_items()) == ["it was paid"]

    talk(body)


def test_a_recorder_may_answer_a_call_of_a_paused_run(memory):
    async def main():
        session = HoldfastSession("chat", memory)
        desk = Desk()
        await desk.pause(session, wants("a"))
        await cut_off(desk, session)
        memory.conversations.recorder("chat").resolve("call_a", "it was paid")

        assert await session.load_run(desk.agent(session)) is None
        assert receipts(await session.get_items()) == ["it was paid"]

    asyncio.run(main())


def test_a_call_that_another_answered_is_not_answered_twice():
    async def body(session):
        desk = Desk()
        await desk.pause(session, wants("a"), wants("b", to="ann"))
        thread = session._store.conversations.thread("chat")
        state = thread.load()
        state["messages"].append(output("call_a", "it was paid"))
        state["counts"]["messages"] += 1
        state["counts"]["open"] = ["call_b"]
        thread.save(state)

        await desk.resume(session, approve)

        found = await session.get_items()
        answers = [i["call_id"] for i in found if "output" in i]
        assert answers == ["call_a", "call_b"]

    talk(body)


@pytest.mark.skipif(VERSION < (0, 20), reason="the SDK begins the inner run anew")
def test_a_paused_agent_that_is_a_tool_pays_once_with_its_approval(place):
    async def body(session):
        desk = Desk()
        inner = Scripted(wants("a"))
        outer = Scripted(calls("desk", '{"input": "pay"}', "outer_1"))

        def boss(owner):
            clerk = desk.agent(owner)
            clerk.model = inner
            tools = [clerk.as_tool("desk", "pays", failure_error_function=None)]
            return Agent(name="boss", model=outer, tools=tools)

        async def resume(owner):
            inner.outputs, outer.outputs = [says("paid")], [says("done")]
            agent = boss(owner)
            state = await owner.load_run(agent)
            approve(state)
            return await Runner.run(agent, state, session=owner)

        result = await Runner.run(boss(session), "Pay.", session=session)
        await session.save_run(result.to_state())
        [paused, *_] = await session.history()
        await resume(session)
        await resume(await session.fork("same", at=paused))
        await resume(await rewound(session, paused))
        with pytest.raises(UserError, match="was used already"):
            await resume(await session.fork("paying", at=paused, effects="run"))

        assert desk.bank.paid == ["a"]

    talk(body, place, "async")


@function_tool(needs_approval=True)
def look(order: int) -> str:
    """A tool that the model is always allowed to use."""
    return f"sent {order}"


def test_a_tool_that_is_always_approved_stays_so():
    async def body(session):
        def agent(*replies):
            return Agent(name="a", model=Scripted(*replies), tools=[look])

        asked = calls("look", '{"order": 1}')
        result = await Runner.run(agent(asked), "go", session=session)
        state = result.to_state()
        for item in state.get_interruptions():
            state.approve(item, always_approve=True)
        await session.save_run(state)
        [paused, *_] = await session.history()
        for _ in range(2):
            worker = agent(says("done"))
            state = await session.load_run(worker)
            result = await Runner.run(worker, state, session=session)
            assert result.final_output == "done"
            await session.rewind(paused)

    talk(body)
