"""Everyone says of a session's calls what the session says: which were left behind."""

import asyncio
import json

import pytest
from agents import Runner
from agents.tracing import set_tracing_disabled

import holdfast
from adapters.openai_agents.bank import Bank, Cut, awaited, wants
from adapters.openai_agents.sessions import opened, user
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.cli import main
from holdfast.retention import Retention
from holdfast.strategy import never

set_tracing_disabled(True)

NAME = "conversation:chat"


async def popped(session):
    while len(await session.get_items()) > 1:
        await session.pop_item()


async def popped_in_a_transaction(session):
    async with session.transaction():
        await popped(session)


async def cleared(session):
    await session.clear_session()


async def cleared_and_pruned(session):
    await session.clear_session()
    await session.add_items([user("Where were we?")])
    await awaited(session._store.prune(Retention(last=1)))


def said(capsys, path, *arguments):
    assert main([*arguments, "--json", "--store", str(path)]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "back", [popped, popped_in_a_transaction, cleared, cleared_and_pruned]
)
def test_a_call_that_a_session_took_back_is_left_behind_for_everyone(
    back, tmp_path, capsys
):
    path = tmp_path / "agents.db"

    async def body():
        async with opened((str(path), {}), "async") as store:
            session = HoldfastSession("chat", store)
            await Bank().pay(session, wants("a"))
            await back(session)
            thread = store.conversations.thread("chat")
            own = await session.effects(), await session.effects(left_behind=True)
            return own, (await thread.effects(), await thread.effects(left_behind=True))

    own, listed = asyncio.run(body())
    here = said(capsys, path, "effects", NAME)
    behind = said(capsys, path, "effects", NAME, "--left-behind")
    first = said(capsys, path, "log", NAME)["checkpoints"][-1]["step"]
    preview = said(capsys, path, "rewind", f"{NAME}@{first}", "-n")

    assert [e.call_id for e in own[1]] == ["call_a"]
    assert own == listed == ([], own[1])
    assert here["effects"] == preview["left_behind"] == []
    assert [e["call_id"] for e in behind["effects"]] == ["call_a"]


def test_a_call_of_a_run_that_was_given_up_is_left_behind_for_everyone(memory):
    """It was approved and made; then its process ended, and the user went on."""
    bank, session = Bank(), HoldfastSession("chat", memory)

    async def body():
        agent = bank.agent(session, wants("a"), needs_approval=True)
        state = (await Runner.run(agent, "Pay.", session=session)).to_state()
        await session.save_run(state)
        resumed = await session.load_run(agent)
        for item in resumed.get_interruptions():
            resumed.approve(item)
        bank.cut = True
        with pytest.raises(Cut):
            await Runner.run(agent, resumed, session=session)
        await session.resolve("call_a", "receipt a")
        before = memory.conversations.thread("chat").effects()
        await session.clear_run()
        await session.add_items([user("Never mind.")])
        return before

    before = asyncio.run(body())
    thread = memory.conversations.thread("chat")

    assert [e.call_id for e in before] == ["call_a"]
    assert thread.effects() == []
    assert [e.call_id for e in thread.effects(left_behind=True)] == ["call_a"]


def test_a_call_that_another_program_took_out_of_the_items_is_left_behind(memory):
    bank, session = Bank(), HoldfastSession("chat", memory)
    asyncio.run(bank.pay(session, wants("a")))
    conversation = memory.conversations.load("chat")
    del conversation.messages[1:]
    memory.conversations.save(conversation)
    listed = memory.conversations.thread("chat").effects()

    asyncio.run(bank.pay(session, wants("b")))

    assert listed == []
    assert bank.paid == ["a"]


def test_a_call_of_a_recorder_that_a_session_took_back_is_left_behind(memory):
    run = memory.conversations.recorder("chat", tools={"pay": lambda to: f"paid {to}"})
    function = {"name": "pay", "arguments": '{"to": "bob"}'}
    asked = {"id": "call_a", "type": "function", "function": function}
    run.add(user("Pay Bob."))
    run.llm_response({"role": "assistant", "content": None, "tool_calls": [asked]})
    run.tool_result("call_a", run.call("call_a"))
    thread = memory.conversations.thread("chat")
    before = thread.effects()

    asyncio.run(popped(HoldfastSession("chat", memory)))

    assert [e.call_id for e in before] == ["call_a"]
    assert thread.effects() == []
    assert thread.effects(left_behind=True) == before


def test_a_call_that_a_session_summarized_stays_on_the_line_of_its_thread(memory):
    async def body():
        session = HoldfastSession("chat", memory)
        await Bank().pay(session, wants("a"))
        await session._atomic_replace_items([user("Bob was paid.")])

    asyncio.run(body())
    thread = memory.conversations.thread("chat")

    assert [e.call_id for e in thread.effects()] == ["call_a"]
    assert thread.effects(left_behind=True) == []


def test_a_summary_stands_for_its_calls_when_a_later_one_is_popped(memory):
    async def body():
        session = HoldfastSession("chat", memory)
        for ref in "ab":
            await Bank().pay(session, wants(ref))
            snapshot = await session._get_compaction_snapshot(3)
            assert await snapshot.replace_suffix(0, [user(f"{ref} was paid.")])
        await session.pop_item()

    asyncio.run(body())

    found = memory.conversations.thread("chat").effects()
    assert [effect.call_id for effect in found] == ["call_a"]


def test_a_restore_does_not_leave_behind_what_a_session_took_back_before(memory):
    memory.agents.save(holdfast.Agent(id="clerk"))
    session = HoldfastSession("chat", memory, agent="clerk")

    async def pay_and_pop():
        await Bank().pay(session, wants("a"))
        await popped(session)

    asyncio.run(session.add_items([user("hello")]))
    kept = memory.agents.checkpoint("clerk")
    asyncio.run(pay_and_pop())

    assert memory.agents.restore("clerk", kept.id).effects == ()


def test_a_fork_keeps_what_its_origin_took_back(memory):
    """So the origin may not undo it."""
    bank, session = Bank(), HoldfastSession("chat", memory)

    async def body():
        await bank.pay(session, wants("a"))
        other = await session.fork("other")
        await session.clear_session()
        first = await session.compensate()
        await other.clear_session()
        return first, await session.compensate()

    first, second = asyncio.run(body())

    assert [len(found.undone) for found in (first, second)] == [0, 1]
    assert bank.cancelled == ["a"]


def test_a_recorder_takes_over_the_payment_that_a_session_took_back(memory):
    bank, session = Bank(), HoldfastSession("chat", memory)
    asyncio.run(bank.pay(session, wants("a")))
    asyncio.run(popped(session))
    paid = []

    @holdfast.once(key=("to", "amount"))
    def pay(to, amount, ref):
        paid.append(ref)

    run = memory.conversations.recorder("chat", tools={"pay": pay})
    arguments = json.dumps({"to": "bob", "amount": 500, "ref": "b"})
    function = {"name": "pay", "arguments": arguments}
    asked = {"id": "call_b", "type": "function", "function": function}
    run.llm_response({"role": "assistant", "content": None, "tool_calls": [asked]})

    assert run.call("call_b") == "receipt a"
    assert paid == []


def test_calls_that_workers_claim_in_turn_stay_after_a_session_took_others_back(
    memory,
):
    asyncio.run(Bank().pay(HoldfastSession("chat", memory), wants("a")))
    asyncio.run(popped(HoldfastSession("chat", memory)))
    function = {"name": "pay", "arguments": '{"to": "eve"}'}
    asked = {"id": "call_b", "type": "function", "function": function}
    tools = {"pay": lambda to: f"paid {to}"}
    run = memory.conversations.recorder("chat", tools=tools, save=never())
    run.llm_response({"role": "assistant", "content": None, "tool_calls": [asked]})
    run.tool_result("call_b", run.call("call_b"))
    memory.conversations.recorder("chat", save=never()).add(user("And?"))

    listed = memory.conversations.thread("chat").effects()

    assert [effect.call_id for effect in listed] == ["call_b"]
