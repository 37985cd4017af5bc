"""Effects of tools that are made once survive whatever happens to their session."""

import asyncio
import os
from contextlib import closing

import pytest
from agents import Agent, Runner, function_tool
from agents.exceptions import MaxTurnsExceeded
from agents.tracing import set_tracing_disabled

import holdfast
from adapters.openai_agents.bank import (
    Bank,
    awaited,
    forked,
    receipts,
    refused,
    rewound,
    wants,
)
from adapters.openai_agents.scripted_model import Scripted, calls, says
from adapters.openai_agents.sessions import VERSION, opened, talk, user
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.retention import Retention
from support.programs import run_program

# Every point instead of each fifth takes longer: `make thorough` has them.
STEP = 1 if os.environ.get("HOLDFAST_THOROUGH") else 5

set_tracing_disabled(True)


async def popped(session):
    while len(await session.get_items()) > 1:
        await session.pop_item()
    return session


async def cleared(session):
    await session.clear_session()
    return session


async def undone(session):
    while len(await session.get_items()) > 1:
        await session.undo()
    return session


async def popped_in_a_transaction(session):
    async with session.transaction():
        return await popped(session)


WAYS_BACK = [rewound, popped, cleared, undone, forked, popped_in_a_transaction]


# --- the first attack: the model asks again after the session went back ---------------


@pytest.mark.parametrize("api", ["sync", "async"])
@pytest.mark.parametrize("back", WAYS_BACK)
def test_a_payment_is_not_made_again_after_a_session_went_back(back, api, place):
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        other = await back(session)

        await bank.pay(other, wants("b"))

        assert bank.paid == ["a"]
        assert receipts(await other.get_items()) == ["receipt a"]

    talk(body, place, api)


def test_a_payment_is_not_made_again_after_an_agent_was_restored(place):
    async def main():
        async with opened(place, "async") as store:
            await store.agents.save(holdfast.Agent(id="clerk"))
            session = HoldfastSession("chat", store, agent="clerk")
            bank = Bank()
            await session.add_items([user("hello")])
            kept = await store.agents.checkpoint("clerk")
            await bank.pay(session, wants("a"))
            await store.agents.restore("clerk", kept.id)

            await bank.pay(session, wants("b"))

            assert bank.paid == ["a"]
            assert receipts(await session.get_items()) == ["receipt a"]

    asyncio.run(main())


@pytest.mark.parametrize("back", WAYS_BACK)
def test_another_payment_is_made_after_a_session_went_back(back):
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        other = await back(session)

        await bank.pay(other, wants("b", amount=7))

        assert bank.paid == ["a", "b"]

    talk(body)


@pytest.mark.parametrize("back", WAYS_BACK)
def test_two_equal_payments_on_purpose_stay_two(back, place):
    async def body(session):
        bank = Bank()
        await bank.pay(session, [wants("a"), wants("b")])
        await bank.pay(session, wants("c"))
        assert sorted(bank.paid) == ["a", "b", "c"]
        other = await back(session)

        await bank.pay(other, wants("d"))
        await bank.pay(other, [wants("e"), wants("f")])
        await bank.pay(other, wants("g"))

        assert sorted(bank.paid) == ["a", "b", "c", "g"]
        found = receipts(await other.get_items())
        assert sorted(found) == [f"receipt {ref}" for ref in "abcg"]

    talk(body, place, "async")


def test_a_rewind_that_is_undone_has_its_payments_again(place):
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        await rewound(session)
        await session.undo()

        await bank.pay(session, wants("b"))

        assert bank.paid == ["a", "b"]

    talk(body, place, "async")


def test_items_that_are_popped_and_added_again_are_no_rewind():
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        items = [await session.pop_item() for _ in range(3)]
        await session.add_items(items[::-1])

        await bank.pay(session, wants("b"))

        assert bank.paid == ["a", "b"]

    talk(body)


@pytest.mark.parametrize("text", ["Pay Bob 500.", []])
def test_a_result_that_was_popped_is_one_the_model_does_not_know(text):
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        await session.pop_item()
        await session.pop_item()

        await bank.pay(session, wants("b"), text=text)

        assert bank.paid == ["a"]

    talk(body)


def test_a_call_that_was_summarized_is_still_made():
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a", id="call_1"))
        await session._atomic_replace_items([user("Bob was paid.")])

        await bank.pay(session, wants("b", id="call_1"))
        assert bank.paid == ["a", "b"]
        snapshot = await session._get_compaction_snapshot(3)
        assert await snapshot.replace_suffix(0, [user("Bob was paid twice.")])
        await bank.pay(session, wants("c", id="call_1"))
        assert bank.paid == ["a", "b", "c"]

        await session.clear_session()
        for ref in "defg":
            await bank.pay(session, wants(ref, id="call_1"))
        assert bank.paid == ["a", "b", "c", "g"]

    talk(body)


def test_a_call_that_a_compaction_keeps_can_be_popped():
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        [_, made, answer, _] = await session.get_items()
        await session._atomic_replace_items([user("Bob was paid."), made, answer])
        await popped(session)

        await bank.pay(session, wants("b"))

        assert bank.paid == ["a"]

    talk(body)


async def pop_one(session):
    await session.pop_item()


async def pop_one_in_a_transaction(session):
    async with session.transaction():
        await session.pop_item()


@pytest.mark.parametrize("pop", [pop_one, pop_one_in_a_transaction])
def test_a_summary_that_is_popped_stands_for_nothing(pop):
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        await session._atomic_replace_items([user("Hello."), user("Bob was paid.")])
        await pop(session)

        await bank.pay(session, wants("b"))

        assert bank.paid == ["a"]

    talk(body)


def test_a_summary_that_is_popped_in_its_transaction_stands_for_nothing():
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        async with session.transaction():
            await session._atomic_replace_items([user("Bob was paid.")])
            await session.pop_item()
            await bank.pay(session, wants("b"))

        assert bank.paid == ["a"]

    talk(body)


def test_a_summary_in_a_transaction_stands_for_its_calls():
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        async with session.transaction():
            await session._atomic_replace_items([user("Bob was paid.")])
            await bank.pay(session, wants("b"))
            await session.clear_session()
            await bank.pay(session, wants("c"))
            await bank.pay(session, wants("d"))

        assert bank.paid == ["a", "b"]
        assert await session.effects(left_behind=True) == []

    talk(body)


def test_a_result_of_an_approved_call_that_was_popped_is_not_known_either():
    async def body(session):
        bank = Bank()
        agent = bank.agent(session, wants("a"), needs_approval=True)
        state = (await Runner.run(agent, "Pay.", session=session)).to_state()
        for item in state.get_interruptions():
            state.approve(item)
        await Runner.run(agent, state, session=session)
        for _ in range(2):
            await session.pop_item()

        await bank.pay(session, wants("b"))

        assert bank.paid == ["a"]

    talk(body)


@pytest.mark.parametrize("back", [cleared, rewound, popped])
def test_a_payment_whose_checkpoint_was_pruned_is_not_made_again(back, place):
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        await bank.pay(session, wants("b"))
        assert bank.paid == ["a", "b"]
        await back(session)
        await awaited(session._store.prune(Retention(last=1)))

        for ref in "cde":
            await bank.pay(session, wants(ref))

        assert bank.paid == ["a", "b", "e"]

    talk(body, place, "async")


def test_a_payment_whose_checkpoint_was_pruned_is_not_left_behind(place):
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        await awaited(session._store.prune(Retention(last=1)))
        assert len(await session.history()) == 1

        await bank.pay(session, wants("b"))

        assert bank.paid == ["a", "b"]

    talk(body, place, "async")


def test_a_run_without_a_loop_pays_once(memory):
    session, bank = HoldfastSession("chat", memory), Bank()
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)  # the SDK would leave its own open
        for ref in "ab":
            Runner.run_sync(bank.agent(session, wants(ref)), "Pay.", session=session)
            loop.run_until_complete(session.clear_session())
    asyncio.set_event_loop(None)

    assert bank.paid == ["a"]


# --- runs that end early --------------------------------------------------------------


async def plain(agent, session):
    await Runner.run(agent, "Pay Bob 500.", session=session)


async def streamed(agent, session):
    result = Runner.run_streamed(agent, "Pay Bob 500.", session=session)
    async for _ in result.stream_events():
        pass


@pytest.mark.parametrize("run", [plain, streamed])
@pytest.mark.skipif(VERSION < (0, 20), reason="the SDK loses items of streamed turns")
def test_a_turn_belongs_to_the_checkpoint_that_has_its_calls(run, place):
    async def body(session):
        bank = Bank()
        await run(bank.agent(session, [wants("a"), wants("b", to="ann")]), session)

        [_, turn, *_] = await session.history()
        found = await session.effects()
        assert [(e.call_id, e.checkpoint) for e in found] == [
            ("call_a", turn.id),
            ("call_b", turn.id),
        ]
        assert await session.effects(left_behind=True) == []
        thread = session._store.conversations.thread("chat")
        assert await awaited(thread.effects()) == found

    talk(body, place, "async")


def test_a_transaction_that_is_given_up_leaves_its_payments_behind():
    async def body(session):
        bank = Bank()

        async def give_up():
            async with session.transaction():
                await bank.pay(session, wants("a"))
                raise MaxTurnsExceeded("enough")

        with pytest.raises(MaxTurnsExceeded):
            await give_up()
        [behind] = await session.effects(left_behind=True)
        assert behind.call_id == "call_a"
        async with session.transaction():
            await bank.pay(session, wants("b"))
            await bank.pay(session, wants("c"))

        assert bank.paid == ["a", "c"]
        assert await session.effects(left_behind=True) == []

    talk(body)


def test_a_payment_that_is_popped_in_its_transaction_is_not_made_again():
    async def body(session):
        bank = Bank()
        async with session.transaction():
            await bank.pay(session, wants("a"))
            await popped(session)
            await bank.pay(session, wants("b"))
            await bank.pay(session, wants("c"))

        assert bank.paid == ["a", "c"]

    talk(body)


def test_what_others_add_during_a_call_does_not_take_its_place():
    async def body(session):
        bank = Bank()

        @function_tool
        async def note(text: str) -> str:
            await session.add_items([user(text)])
            return "noted"

        model = Scripted([wants("a"), calls("note", '{"text": "hm"}')], says("done"))
        agent = Agent(name="a", model=model, tools=[session.once(bank.tool()), note])
        await Runner.run(agent, "go", session=session)
        assert await session.effects(left_behind=True) == []
        await bank.pay(session, wants("b"))

        assert bank.paid == ["a", "b"]

    talk(body)


class Wrapping:
    """A session over another one that does not pass the context of a run on."""

    session_settings = None

    def __init__(self, session):
        self.session, self.session_id = session, session.session_id

    async def get_items(self, limit=None):
        return await self.session.get_items(limit)

    async def add_items(self, items):
        await self.session.add_items(items)

    async def pop_item(self):
        return await self.session.pop_item()

    async def clear_session(self):
        await self.session.clear_session()


@pytest.mark.parametrize("wrapped", [Wrapping, lambda session: session])
def test_two_runs_at_a_time_in_one_session_have_turns_of_their_own(wrapped):
    async def body(session):
        both = asyncio.Barrier(2)

        @function_tool
        async def meet(name: str) -> str:
            await both.wait()
            return name

        async def run(name):
            asked = calls("meet", f'{{"name": "{name}"}}', f"call_{name}")
            model, tools = Scripted(asked, says("done")), [session.once(meet)]
            agent = Agent(name="a", model=model, tools=tools)
            await Runner.run(agent, "Meet.", session=wrapped(session))

        await asyncio.gather(run("ann"), run("bob"))

        ends = [e.checkpoint for e in await session.effects()]
        assert len(set(ends)) == 2
        assert await session.effects(left_behind=True) == []

    talk(body)


def test_an_agent_that_is_a_tool_pays_once(place):
    async def body(session):
        bank = Bank()

        async def run(inner, outer):
            clerk = bank.agent(session, wants(inner))
            tool = clerk.as_tool("clerk", "pays")
            model = Scripted(calls("clerk", '{"input": "pay"}', outer), says("ok"))
            boss = Agent(name="boss", model=model, tools=[tool])
            await Runner.run(boss, "Pay Bob.", session=session)

        await run("a", "outer_1")
        await run("b", "outer_2")
        assert bank.paid == ["a", "b"]
        await popped(session)
        await run("c", "outer_3")
        await run("d", "outer_4")
        await run("e", "outer_5")
        assert bank.paid == ["a", "b", "e"]

    talk(body, place, "async")


# --- calls that fail, or whose end is unknown -----------------------------------------


@pytest.mark.skipif(VERSION < (0, 24), reason="the SDK does not tell of the error")
def test_a_payment_that_failed_is_made_after_a_rewind():
    async def body(session):
        bank = Bank()
        bank.fails = 1
        await bank.pay(session, wants("a"))
        assert "An error occurred" in receipts(await session.get_items())[0]
        [failed] = await session.effects()
        assert failed.status == "failed"
        assert failed.error == "OSError: the bank is closed"
        await rewound(session)

        await bank.pay(session, wants("b"))

        assert bank.paid == ["b"]

    talk(body)


def test_a_payment_with_an_unknown_end_is_refused_until_it_is_resolved(place):
    async def body(session):
        bank = Bank()
        await bank.killed_paying(session, "a")

        assert await refused(bank.pay(session, wants("b"))) == "call_interrupted"
        [unknown] = await session.effects(left_behind=True)
        assert (unknown.call_id, unknown.status) == ("call_a", "unknown")
        assert await session.resolve("call_a", "receipt a") == "receipt a"
        await bank.pay(session, wants("c"))

        assert bank.paid == ["a"]
        assert receipts(await session.get_items())[-1] == "receipt a"

    talk(body, place, "async")


def test_a_payment_with_an_unknown_end_is_made_again_if_one_says_so():
    async def body(session):
        bank = Bank()
        await bank.killed_paying(session, "a")
        bank.paid.clear()

        await bank.pay(session, wants("b"), again=True)
        await bank.pay(session, wants("c"))

        assert bank.paid == ["b", "c"]

    talk(body)


def test_only_a_call_that_did_not_end_can_be_resolved():
    async def body(session):
        with pytest.raises(holdfast.NotFound, match="no call 'call_a'"):
            await session.resolve("call_a", "receipt")
        await Bank().pay(session, wants("a"))
        with pytest.raises(holdfast.NotFound, match="no call 'call_a'"):
            await session.resolve("call_a", "receipt")

    talk(body)


# --- kills ----------------------------------------------------------------------------


@pytest.mark.processes
def test_a_process_that_is_killed_while_it_pays_leaves_an_unknown_payment(
    place, tmp_path
):
    url, options = place
    if url == ":memory:":
        pytest.skip("ends with its process")
    schema = [options["schema"]] if options else []

    told = run_program("session_payments", "cut", url, tmp_path / "paid", *schema)

    assert told == [
        ["call_interrupted", "receipt c"],
        [["done", "receipt c"], ["c"]],
        ["call_interrupted", "receipt a"],
        [["done", "receipt a"], ["a"]],
    ]


@pytest.mark.processes
def test_whenever_a_process_is_killed_the_payment_is_made_once(tmp_path):
    [told] = run_program("session_payments", "kills", tmp_path, STEP)

    assert told["wrong"] == []
    assert told["seen"] == ["call_interrupted", "done"]
    assert told["points"] > 10
