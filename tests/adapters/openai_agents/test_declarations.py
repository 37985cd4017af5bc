"""What tools, sessions and forks say about effects, and how they are undone."""

import pytest
from agents import Agent, Runner, function_tool
from agents.tracing import set_tracing_disabled

import holdfast
from adapters.openai_agents.bank import Bank, forked, refused, rewound, wants
from adapters.openai_agents.scripted_model import Scripted, calls, says
from adapters.openai_agents.sessions import VERSION, talk, user
from holdfast import Unstorable
from holdfast.adapters.openai_agents import HoldfastSession

set_tracing_disabled(True)


# --- policies and declarations --------------------------------------------------------


def test_a_tool_may_refuse_what_happened_before():
    async def body(session):
        bank = Bank(policy="refuse")
        await bank.pay(session, wants("a"))
        await rewound(session)

        assert await refused(bank.pay(session, wants("b"))) == "effect_happened"
        assert bank.paid == ["a"]

    talk(body)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"options": {"effects": "run"}}, ["a", "b"]),
        ({"tool": {"policy": "run"}}, ["a", "b"]),
        ({"options": {"effects": "replay"}, "tool": {"policy": "run"}}, ["a"]),
    ],
)
def test_the_policy_of_a_session_comes_before_that_of_a_tool(given, expected):
    async def body(session):
        bank = Bank(**given.get("tool", {}))
        await bank.pay(session, wants("a"))
        await rewound(session)
        await bank.pay(session, wants("b"))

        assert bank.paid == expected

    talk(body, **given.get("options", {}))


def test_a_fork_has_the_policy_of_its_session():
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))

        await bank.pay(await forked(session), wants("b"))

        assert bank.paid == ["a", "b"]

    talk(body, effects="run")


def test_a_fork_may_deny_all_effects(place):
    async def body(session):
        bank = Bank()
        await session.add_items([user("hello")])
        trial = await session.fork("trial", effects="deny")
        nested = await trial.fork("nested")

        assert await refused(bank.pay(trial, wants("a"))) == "effect_denied"
        assert await refused(bank.pay(nested, wants("b"))) == "effect_denied"
        await bank.pay(session, wants("c"))
        assert bank.paid == ["c"]

    talk(body, place, "async")


def test_a_tool_can_be_declared_where_it_is_made_once():
    async def body(session):
        done = []

        @function_tool
        def ship(order: int, note: str) -> str:
            done.append(note)
            return note

        async def run(id_, note, **declared):
            tool = session.once(ship, **declared)
            given = f'{{"order": 1, "note": "{note}"}}'
            model = Scripted(calls("ship", given, id_), says("done"))
            agent = Agent(name="a", model=model, tools=[tool])
            await Runner.run(agent, "go", session=session)

        await run("call_1", "one", key=("order",))
        await session.clear_session()
        await run("call_2", "two", key=("order",))
        assert done == ["one"]
        await session.clear_session()
        await run("call_3", "three", key=lambda order, note: note)
        assert done == ["one", "three"]
        with pytest.raises(Unstorable, match="effects"):
            session.once(ship, policy="never")

    talk(body)


@pytest.mark.skipif(VERSION < (0, 24), reason="the SDK does not give the function")
def test_a_tool_is_declared_by_its_function():
    async def body(session):
        bank = Bank()

        @function_tool
        @holdfast.once(key=("to", "amount"), undo=bank.cancel)
        def pay(to: str, amount: int, ref: str) -> str:
            bank.paid.append(ref)
            return f"receipt {ref}"

        async def run(ref, to, **declared):
            model = Scripted(wants(ref, to=to), says("done"))
            tools = [session.once(pay, **declared)]
            agent = Agent(name="a", model=model, tools=tools)
            await Runner.run(agent, "Pay.", session=session)

        await run("a", "bob")
        await session.clear_session()
        await run("b", "bob")
        assert bank.paid == ["a"]
        await run("c", "ann", key=("amount",))
        await session.clear_session()
        assert len((await session.compensate()).undone) == 2
        assert bank.cancelled == ["c", "a"]

    talk(body)


@pytest.mark.skipif(VERSION < (0, 24), reason="the SDK does not give the function")
def test_a_repeatable_tool_is_left_alone():
    @function_tool
    @holdfast.repeatable
    def look(order: int) -> str:
        return "sent"

    with holdfast.open(":memory:") as store:
        session = HoldfastSession("chat", store)

        assert session.once(look) is look
        assert session.once(look, key=("order",)) is not look


def test_a_policy_that_does_not_exist_is_refused(memory):
    with pytest.raises(Unstorable, match="effects"):
        HoldfastSession("chat", memory, effects="sometimes")


# --- undoing --------------------------------------------------------------------------


def test_what_was_left_behind_can_be_undone_and_then_done_again(place):
    async def body(session):
        bank = Bank()
        await bank.pay(session, wants("a"))
        await bank.pay(session, wants("b", to="ann"))
        await session.clear_session()

        told = await session.compensate()
        assert [effect.call_id for effect in told.undone] == ["call_b", "call_a"]
        assert bank.cancelled == ["b", "a"]
        assert (await session.compensate()).undone == ()
        await bank.pay(session, wants("c"))

        assert bank.paid == ["a", "b", "c"]

    talk(body, place, "async")


def test_what_cannot_be_undone_is_told():
    async def body(session):
        bank = Bank(undo=None)
        assert (await session.compensate()).kept == ()
        await bank.pay(session, wants("a"))
        await bank.killed_paying(session, "b")
        await session.clear_session()
        told = await session.compensate()
        assert [effect.call_id for effect in told.kept] == ["call_b", "call_a"]

        async def closed(effect):
            raise OSError("the bank is closed")

        session.once(bank.tool(), undo=closed)
        with pytest.raises(OSError, match="closed"):
            await session.compensate()
        session.once(bank.tool(), undo=bank.cancel)
        told = await session.compensate()
        assert [effect.call_id for effect in told.undone] == ["call_a"]
        assert [effect.call_id for effect in told.unknown] == ["call_b"]

    talk(body)
