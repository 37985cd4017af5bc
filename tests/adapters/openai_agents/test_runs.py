"""Real runs of the SDK over a session, with a scripted model: no network."""

import asyncio
import dataclasses
import json
import os

import pytest
from agents import (
    Agent,
    RunConfig,
    Runner,
    SessionSettings,
    SQLiteSession,
    function_tool,
)
from agents.exceptions import MaxTurnsExceeded, UserError
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.tracing import set_tracing_disabled

import holdfast
from adapters.openai_agents.scripted_model import Scripted, calls, says, thinks
from adapters.openai_agents.sessions import VERSION, output, talk, texts, user
from holdfast import Conflict, FormatMismatch, NotFound
from holdfast.adapters.openai_agents import HoldfastSession
from support.programs import run_program

# Every point instead of each fifth takes a minute: `make thorough` has them.
STEP = 1 if os.environ.get("HOLDFAST_THOROUGH") else 5

set_tracing_disabled(True)


@function_tool
def weather(city: str) -> str:
    """How it is there."""
    return f"sunny in {city}"


# --- runs -----------------------------------------------------------------------------


def conversation(session, run):
    """A conversation with reasoning, tools and a handoff; what the models saw."""
    expert = Agent(name="expert", model=Scripted(says("It rains.", "msg_3")))
    model = Scripted(
        [thinks("hm"), calls("weather", '{"city": "Lyon"}')],
        says("Sunny.", "msg_2"),
        calls("transfer_to_expert", id="call_2"),
    )
    agent = Agent(name="guide", model=model, tools=[weather], handoffs=[expert])

    async def main():
        first = await run(agent, "How is Lyon?", session)
        second = await run(agent, "And Paris?", session)
        return [first, second, await session.get_items()]

    ended = asyncio.run(main())
    return [*ended, model.inputs, expert.model.inputs]


async def plain(agent, text, session):
    return (await Runner.run(agent, text, session=session)).final_output


async def streamed(agent, text, session):
    result = Runner.run_streamed(agent, text, session=session)
    async for _ in result.stream_events():
        pass
    return result.final_output


async def in_a_transaction(agent, text, session):
    if isinstance(session, SQLiteSession):
        return await streamed(agent, text, session)
    async with session.transaction():
        return await streamed(agent, text, session)


@pytest.mark.parametrize("run", [plain, streamed, in_a_transaction])
def test_a_conversation_goes_as_on_the_sdks_own_session(run, tmp_path):
    with holdfast.open(":memory:") as store:
        ours = conversation(HoldfastSession("s", store), run)
    sqlite = SQLiteSession("s", tmp_path / "theirs.db")
    theirs = conversation(sqlite, run)
    sqlite.close()

    assert ours == theirs
    assert ours[:2] == ["Sunny.", "It rains."]
    assert len(ours[2]) > 5


def test_each_turn_of_a_run_is_a_checkpoint_that_can_be_gone_back_to():
    async def body(session):
        agent = Agent(name="a", model=Scripted(says("one"), says("two"), says("three")))
        await Runner.run(agent, "first", session=session)
        [answered, _] = await session.history()
        await Runner.run(agent, "second", session=session)

        other = await session.fork("other", at=answered)
        await Runner.run(agent, "instead", session=other)

        assert texts(await session.get_items()) == ["first", "one", "second", "two"]
        assert texts(await other.get_items()) == ["first", "one", "instead", "three"]

    talk(body)


def test_a_limit_in_the_run_config_is_what_the_model_sees():
    async def body(session):
        await session.add_items([user(f"old {n}") for n in range(10)])
        agent = Agent(name="a", model=Scripted(says("yes")))
        config = RunConfig(session_settings=SessionSettings(limit=3))
        await Runner.run(agent, "new", session=session, run_config=config)

        assert texts(agent.model.inputs[0]) == ["old 7", "old 8", "old 9", "new"]

    talk(body)


def test_a_run_that_fails_in_a_transaction_leaves_no_trace():
    async def body(session):
        model = Scripted(calls("weather", '{"city": "Lyon"}'), calls("weather", "{}"))
        agent = Agent(name="a", model=model, tools=[weather])

        async def fail():
            async with session.transaction():
                await Runner.run(agent, "hello", session=session, max_turns=1)

        with pytest.raises(MaxTurnsExceeded):
            await fail()

        assert await session.get_items() == []

    talk(body)


def test_what_the_context_of_a_run_tells_is_kept_with_its_checkpoints():
    async def body(session):
        agent = Agent(name="a", model=Scripted(says("hello")))
        await Runner.run(agent, "hi", session=session, context={"tenant": "acme"})

        told = {"tenant": "acme"} if VERSION >= (0, 20) else {}
        assert [c.metadata for c in await session.history()] == [told] * 2

    talk(body, metadata=lambda wrapper: {"tenant": wrapper.context["tenant"]})


# --- approvals ------------------------------------------------------------------------


@dataclasses.dataclass
class Refunds:
    """An agent with a tool that needs approval, and what the tool has done."""

    session: HoldfastSession
    once: bool = False
    done: list = dataclasses.field(default_factory=list)
    model: Scripted = dataclasses.field(default_factory=Scripted)

    def agent(self, **more):
        @function_tool(needs_approval=True)
        def refund(order: int) -> str:
            self.done.append(order)
            return f"refunded {order}"

        tool = self.session.once(refund, **more) if self.once else refund
        return Agent(name="clerk", model=self.model, tools=[tool])

    async def pause(self, *orders):
        wanted = [
            calls("refund", json.dumps({"order": order}), f"call_{order}")
            for order in orders
        ]
        self.model.outputs.append(wanted)
        return await Runner.run(self.agent(), "refund please", session=self.session)

    async def resume(self, **more):
        agent = self.agent(**more)
        state = await self.session.load_run(agent)
        for item in state.get_interruptions():
            state.approve(item)
        self.model.outputs = [says("done")]
        return await Runner.run(agent, state, session=self.session)


@pytest.mark.processes
def test_a_paused_run_is_resumed_by_another_process_and_the_tool_runs_once(tmp_path):
    left, found = run_program("paused_runs", "pause", tmp_path / "agents.db")

    kept = ["user", "function_call", "function_call_output", "message"]
    assert left == kept[:2]
    assert found == [["refund"], kept, ["4812"], True]


@pytest.mark.processes
def test_whenever_a_run_is_killed_it_goes_on_and_the_tool_runs_once(tmp_path):
    [told] = run_program("paused_runs", "kills", tmp_path, STEP)

    assert told["wrong"] == []
    assert told["missed"] == []
    assert told["points"] > 60 / STEP


def test_items_and_run_are_one_checkpoint_in_a_transaction():
    async def body(session):
        refunds = Refunds(session)
        async with session.transaction():
            result = await refunds.pause(1)
            await session.save_run(result.to_state())
            assert await session.load_run(refunds.agent()) is not None

        assert len(await session.history()) == 1
        async with session.transaction():
            await refunds.resume()
        assert len(await session.history()) == 2
        assert await session.load_run(refunds.agent()) is None
        assert refunds.done == [1]

    talk(body)


def test_items_can_be_given_along_with_a_run():
    async def body(session):
        refunds = Refunds(session)
        result = await refunds.pause(1)
        before = await session.history()
        await session.save_run(result.to_state(), items=[user("note")])

        assert len(await session.history()) == len(before) + 1
        assert texts((await session.get_items())[-1:]) == ["note"]

    talk(body)


def test_the_answer_to_a_call_takes_the_run_away_in_the_same_checkpoint(place):
    async def body(session):
        refunds = Refunds(session)
        await session.save_run((await refunds.pause(1)).to_state())
        await session.add_items([user("are you there?")])
        assert await session.load_run(refunds.agent()) is not None

        await session.add_items([output("call_1")])
        assert await session.load_run(refunds.agent()) is None
        await session.undo()
        assert await session.load_run(refunds.agent()) is not None

    talk(body, place, "async")


@pytest.mark.parametrize("end", ["pop_item", "clear_session", "clear_run"])
def test_a_run_goes_with_the_call_it_waits_for(end):
    async def body(session):
        refunds = Refunds(session)
        await session.save_run((await refunds.pause(1)).to_state())

        await getattr(session, end)()
        assert await session.load_run(refunds.agent()) is None

    talk(body)


def test_without_a_run_there_is_none_and_giving_it_up_saves_nothing():
    async def body(session):
        agent = Refunds(session).agent()
        assert await session.load_run(agent) is None
        await session.clear_run()
        await session.add_items([user("one")])
        await session.clear_run()

        assert await session.load_run(agent) is None
        assert len(await session.history()) == 1

    talk(body)


def test_of_two_calls_one_is_decided_now_and_the_other_later():
    async def body(session):
        refunds = Refunds(session)
        state = (await refunds.pause(1, 2)).to_state()
        first = next(i for i in state.get_interruptions() if "1" in i.raw_item.call_id)
        state.approve(first)
        async with session.transaction():
            result = await Runner.run(refunds.agent(), state, session=session)
            await session.save_run(result.to_state())

        again = await session.load_run(refunds.agent())
        assert [i.raw_item.call_id for i in again.get_interruptions()] == ["call_2"]
        again.reject(again.get_interruptions()[0])
        refunds.model.outputs.append(says("one of two"))
        result = await Runner.run(refunds.agent(), again, session=session)
        assert (result.final_output, refunds.done) == ("one of two", [1])
        assert await session.load_run(refunds.agent()) is None

    talk(body)


def test_an_approval_inside_an_agent_that_is_a_tool_is_kept():
    async def body(session):
        refunds = Refunds(session)
        refunds.model.outputs.append(calls("refund", '{"order": 7}', "inner_1"))
        outer = Scripted(calls("clerk", '{"input": "refund 7"}', "outer_1"))

        def boss():
            tool = refunds.agent().as_tool("clerk", "does refunds")
            return Agent(name="boss", model=outer, tools=[tool])

        result = await Runner.run(boss(), "refund 7", session=session)
        await session.save_run(result.to_state())
        agent = boss()
        state = await session.load_run(agent)
        for item in state.get_interruptions():
            state.approve(item)
        refunds.model.outputs.append(says("inner done"))
        outer.outputs.append(says("all done"))
        result = await Runner.run(agent, state, session=session)

        assert (result.final_output, refunds.done) == ("all done", [7])
        assert await session.load_run(boss()) is None

    talk(body)


def test_of_two_workers_that_resume_a_run_one_adds_what_came_of_it(place):
    async def body(session):
        first, second = Refunds(session, once=True), Refunds(await again(session), True)
        await session.save_run((await first.pause(1)).to_state())

        ended = await asyncio.gather(
            first.resume(), second.resume(), return_exceptions=True
        )

        assert len(first.done) + len(second.done) == 1
        [lost] = [end for end in ended if isinstance(end, Exception)]
        conflict = lost if isinstance(lost, Conflict) else lost.__cause__
        assert conflict.code in {"run_resumed", "call_interrupted"}
        kept = await session.get_items()
        assert [i.get("type") for i in kept].count("function_call_output") == 1

    talk(body, place, "async")


async def again(session):
    """The same session as another worker has it."""
    return HoldfastSession(session.session_id, session._store)


@pytest.mark.parametrize("once", [False, True])
def test_a_run_that_was_resumed_elsewhere_adds_nothing(once):
    async def body(session):
        late, other = Refunds(session, once), Refunds(await again(session), once)
        await session.save_run((await late.pause(1)).to_state())
        agent = late.agent()
        state = await session.load_run(agent)
        await other.resume()
        kept = await session.get_items()

        state.approve(state.get_interruptions()[0])
        late.model.outputs = [says("done")]
        with pytest.raises((Conflict, UserError), match="resumed, or given up"):
            await Runner.run(agent, state, session=session)
        assert await session.get_items() == kept
        assert late.done == ([] if once else [1])

    talk(body)


# --- contexts and versions ------------------------------------------------------------


@dataclasses.dataclass
class Tenant:
    name: str


def test_a_context_of_ones_own_is_kept_with_the_sdks_options():
    async def body(session):
        refunds = Refunds(session)
        refunds.model.outputs.append(calls("refund", '{"order": 1}'))
        agent, tenant = refunds.agent(), Tenant("acme")
        result = await Runner.run(agent, "go", session=session, context=tenant)
        state = result.to_state()

        with pytest.raises(UserError, match="strict_context"):
            await session.save_run(state, strict_context=True)
        await session.save_run(state, context_serializer=dataclasses.asdict)
        found = await session.load_run(
            agent, context_deserializer=lambda plain: Tenant(**plain)
        )
        assert found._context.context == tenant
        other = await session.load_run(agent, context_override=Tenant("other"))
        assert other._context.context == Tenant("other")

    talk(body)


def stored_run(store):
    return store.conversations.load("chat").extra["paused_run"]


def test_a_run_of_a_newer_sdk_says_what_to_install(memory):
    async def main():
        session = HoldfastSession("chat", memory)
        refunds = Refunds(session)
        await session.save_run((await refunds.pause(1)).to_state())
        thread = memory.conversations.thread("chat")
        state = thread.load()
        state["paused_run"]["sdk"] = "9.9.9"
        state["paused_run"]["schema"] = "99.0"
        state["paused_run"]["state"]["$schemaVersion"] = "99.0"
        thread.save(state)

        with pytest.raises(FormatMismatch, match=r"install openai-agents>=9\.9\.9"):
            await session.load_run(refunds.agent())

    asyncio.run(main())


def test_a_run_of_another_agent_says_which_one_is_needed():
    async def body(session):
        await session.save_run((await Refunds(session).pause(1)).to_state())

        with pytest.raises(FormatMismatch, match="it is at 'clerk'"):
            await session.load_run(Agent(name="stranger"))

    talk(body)


def test_a_run_is_plain_json_that_can_be_read_and_compared(memory):
    async def main():
        session = HoldfastSession("chat", memory)
        await session.save_run((await Refunds(session).pause(1)).to_state())

    asyncio.run(main())

    run = stored_run(memory)
    assert json.loads(json.dumps(run)) == run
    assert run["agent"] == "clerk"
    assert "call_1" in run["calls"]
    changes = memory.conversations.thread("chat").diff("@~1").changes
    assert any("paused_run" in str(change.path) for change in changes)


# --- once -----------------------------------------------------------------------------


def test_a_call_made_once_gives_its_result_to_a_run_that_is_resumed_again():
    async def body(session):
        refunds = Refunds(session, once=True)
        await session.save_run((await refunds.pause(1)).to_state())
        [paused, *_] = await session.history()
        await refunds.resume()
        await session.rewind(paused)
        result = await refunds.resume()

        assert result.final_output == "done"
        assert refunds.done == [1]
        assert output("call_1", "refunded 1") in await session.get_items()

    talk(body)


def test_a_call_whose_end_nobody_knows_is_not_made_again_unasked():
    async def body(session):
        class Cut(BaseException):
            """As a process that goes away in the middle."""

        refunds = Refunds(session, once=True)
        await session.save_run((await refunds.pause(1)).to_state())
        refunds.done = CutOff(Cut)
        with pytest.raises(Cut):
            await refunds.resume()
        refunds.done = []

        with pytest.raises(UserError) as failed:
            await refunds.resume()
        assert isinstance(failed.value.__cause__, Conflict)
        assert failed.value.__cause__.code == "call_interrupted"
        assert refunds.done == []
        await refunds.resume(again=True)
        assert refunds.done == [1]

    talk(body)


class CutOff(list):
    def __init__(self, error):
        self.error = error

    def append(self, order):
        raise self.error


def test_a_tool_that_failed_may_be_called_again(memory):
    async def main():
        session = HoldfastSession("chat", memory)
        attempts = []

        @function_tool(failure_error_function=None)
        def flaky() -> str:
            attempts.append(1)
            if len(attempts) == 1:
                raise OSError("no connection")
            return "worked"

        def agent():
            model = Scripted(calls("flaky"), says("done"))
            return Agent(name="a", model=model, tools=[session.once(flaky)])

        with pytest.raises(UserError, match="no connection"):
            await Runner.run(agent(), "go", session=session)
        await session.clear_session()
        result = await Runner.run(agent(), "go", session=session)

        assert (result.final_output, len(attempts)) == ("done", 2)

    asyncio.run(main())


def test_a_call_may_be_the_first_thing_that_is_kept_of_a_session(place):
    async def body(session):
        model = Scripted(calls("weather", '{"city": "Lyon"}'), says("Sunny."))
        agent = Agent(name="a", model=model, tools=[session.once(weather)])
        async with session.transaction():
            await Runner.run(agent, "How is Lyon?", session=session)

        assert output("call_1", "sunny in Lyon") in await session.get_items()
        assert len(await session.history()) == 1

    talk(body, place, "async", owner="ann")


def test_ids_that_a_model_uses_again_are_calls_of_their_own(memory):
    async def main():
        session = HoldfastSession("chat", memory)
        times = []

        @function_tool
        def now() -> object:
            """The time, as an object that cannot be stored."""
            times.append(len(times))
            return {"at": times[-1], "zone": object}

        for _ in range(2):
            asked = calls("now", item=FAKE_RESPONSES_ID)
            model = Scripted(asked, says("done"))
            agent = Agent(name="a", model=model, tools=[session.once(now)])
            await Runner.run(agent, "what time?", session=session)

        assert times == [0, 1]

    asyncio.run(main())


def test_a_stranger_cannot_load_the_run_of_another_owner(memory):
    async def main():
        mine = HoldfastSession("chat", memory, owner="ann")
        await mine.save_run((await Refunds(mine).pause(1)).to_state())
        theirs = HoldfastSession("chat", memory, owner="bob")

        for refused in (
            theirs.load_run(Refunds(theirs).agent()),
            theirs.clear_run(),
        ):
            with pytest.raises(NotFound):
                await refused

    asyncio.run(main())
