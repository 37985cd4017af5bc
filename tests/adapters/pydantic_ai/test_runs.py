"""Durable runs: what is recorded, taken from the record, refused and decided."""

import asyncio
import contextlib
import dataclasses

import pytest
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolset,
    ModelRetry,
    Tool,
)
from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

import holdfast
from holdfast.adapters.pydantic_ai import (
    HoldfastConversationStore,
    HoldfastDurability,
)

THREAD = "pydantic_ai_run:r"


class Killed(BaseException):
    """Stands for kill -9."""


class World:
    """What models were asked and what tools did, and a script for the model."""

    def __init__(self, *replies):
        self.replies, self.asked, self.done, self.trouble = replies, 0, [], {}

    def answer(self, messages, info):
        del info
        self.asked += 1
        turn = sum(message.kind == "response" for message in messages)
        calls = self.replies[turn] if turn < len(self.replies) else ()
        parts = [ToolCallPart("act", {"what": what}) for what in calls]
        return ModelResponse(parts=parts or [TextPart("done")])

    def act(self, what: str) -> str:
        trouble = self.trouble.pop(what, None)
        if trouble is not Killed and trouble is not None:
            raise trouble
        self.done.append(what)
        if trouble is Killed:
            raise Killed
        return f"{what} is done"

    def agent(self, durability, declare=lambda tool: tool, **options):
        def act(what: str) -> str:
            return self.act(what)

        return Agent(
            FunctionModel(self.answer),
            name="worker",
            tools=[declare(act)],
            capabilities=[durability],
            **options,
        )


async def run(durability, agent, id_="r", **given):
    async with durability.run(id_):
        return await agent.run("go", **given)


@pytest.fixture
def store():
    with holdfast.open(":memory:") as store:
        yield store


@pytest.fixture
def durability(store):
    return HoldfastDurability(store)


def test_a_run_that_failed_goes_on_and_one_that_ended_gives_the_same_again(
    place, tmp_path
):
    address, options = place
    world = World(["a"], ["b", "c"])
    world.trouble["c"] = RuntimeError("the network is down")

    async def main():
        # On a store in memory both attempts use the same one.
        shared = holdfast.open(address, **options)
        given = (shared, {}) if address == ":memory:" else (address, options)
        for expected in (RuntimeError, None, None):
            durability = HoldfastDurability(given[0], **given[1])
            agent = world.agent(durability)
            if expected:
                with pytest.raises(expected):
                    await run(durability, agent)
            else:
                result = await run(durability, agent)
            await durability.close()
        shared.close()
        return result

    result = asyncio.run(main())

    assert (result.output, world.asked, world.done) == ("done", 3, ["a", "b", "c"])
    assert result.usage.requests == 3
    assert result.run_id == "r"


def test_outside_of_a_run_nothing_is_recorded(store, durability):
    world = World(["a"])

    result = asyncio.run(world.agent(durability, holdfast.once).run("go"))

    assert (result.output, world.done) == ("done", ["a"])
    assert len(store.threads()) == 0


def test_control_flow_stays_control_flow_when_a_run_is_resumed(durability):
    world = World(["a"], ["a"], ["b"])
    world.trouble = {"a": ModelRetry("not now"), "b": RuntimeError("x")}
    agent = world.agent(durability, holdfast.once)

    async def main():
        with pytest.raises(RuntimeError):
            await run(durability, agent)
        return await run(durability, agent)

    result = asyncio.run(main())

    assert (world.asked, world.done) == (4, ["a", "b"])
    [retried] = [p for m in result.all_messages()[:3] for p in m.parts[:1]][2:]
    assert (retried.outcome, retried.content) == ("retried", "not now")


def test_a_deferred_call_pauses_a_resumed_run_again(durability):
    world = World(["a"])
    world.trouble["a"] = CallDeferred()
    agent = world.agent(durability, output_type=[str, DeferredToolRequests])

    async def main():
        paused = [await run(durability, agent) for _ in range(2)]
        [call] = paused[1].output.calls
        results = DeferredToolResults(calls={call.tool_call_id: "by a person"})
        async with durability.run("r"):
            await agent.run("go")
            return await agent.run(
                message_history=paused[1].all_messages(), deferred_tool_results=results
            )

    result = asyncio.run(main())

    assert (result.output, world.asked, world.done) == ("done", 2, [])
    assert result.run_id == "r:2"


def test_a_call_made_once_that_was_cut_off_is_decided(store, durability):
    world = World(["a"], ["b"])
    world.trouble = {"a": Killed, "b": Killed}
    agent = world.agent(durability, holdfast.once)

    async def attempt():
        with contextlib.suppress(Killed):
            return await run(durability, agent)

    async def main():
        await attempt()
        with pytest.raises(holdfast.Conflict, match=r"durability\.resolve") as refused:
            await attempt()
        assert refused.value.code == "call_interrupted"
        [effect] = await durability.unknown("r")
        await durability.retry(effect)
        await attempt()  # makes a again, and is cut off in b
        [effect] = await durability.unknown("r")
        await durability.resolve(effect, "done, as I saw")
        made = store.thread(THREAD).effects()[-1]
        with pytest.raises(holdfast.Conflict, match="known how"):
            await durability.retry(made)
        return await attempt()

    result = asyncio.run(main())

    assert world.done == ["a", "a", "b"]
    assert result.all_messages()[4].parts[0].content == "done, as I saw"


def test_a_tool_in_a_toolset_under_another_name_is_made_once_too(store, durability):
    @holdfast.once
    def act(what: str) -> str:
        return what

    async def rename(ctx, tool):
        return dataclasses.replace(tool, name="perform")

    def answer(messages, info):
        calls = [ToolCallPart(t.name, {"what": t.name}) for t in info.function_tools]
        return ModelResponse(parts=calls if len(messages) == 1 else [TextPart("done")])

    agent = Agent(
        FunctionModel(answer),
        name="worker",
        capabilities=[durability],
        toolsets=[
            FunctionToolset([act], id="plain").prefixed("my"),
            FunctionToolset([Tool(act, prepare=rename)], id="renamed").filtered(
                lambda ctx, tool: True
            ),
        ],
    )

    asyncio.run(run(durability, agent))

    made = [(e.call_id != "", e.result) for e in store.thread(THREAD).effects()]
    assert made == [(True, "my_act"), (True, "perform")]


def test_a_call_that_ended_but_whose_step_is_missing_is_not_made_again(
    store, durability
):
    world = World(["a"])

    @holdfast.once
    def act(what: str) -> str:
        store.thread(THREAD).amend(values={"note": "moves the head"})
        return world.act(what)

    agent = Agent(
        FunctionModel(world.answer),
        name="worker",
        tools=[act],
        capabilities=[durability],
    )

    async def main():
        with pytest.raises(holdfast.Conflict) as refused:
            await run(durability, agent)
        return refused.value.code, await run(durability, agent)

    code, result = asyncio.run(main())

    assert (code, result.output) == ("run_moved", "done")
    assert (world.asked, world.done) == (2, ["a"])
    assert result.all_messages()[2].parts[0].content == "a is done"


def test_an_undeclared_tool_that_was_cut_off_is_called_again(durability):
    world = World(["a"])
    world.trouble["a"] = Killed
    agent = world.agent(durability)

    async def main():
        with pytest.raises(Killed):
            await run(durability, agent)
        return await run(durability, agent)

    assert asyncio.run(main()).output == "done"
    assert (world.asked, world.done) == (2, ["a", "a"])


def test_a_rewound_run_goes_on_from_there_and_takes_its_effects_over(store, durability):
    world = World(["a"], ["b"])
    agent = world.agent(durability, holdfast.once)

    asyncio.run(run(durability, agent))
    asked = store.thread(THREAD).history(order="oldest")[2]
    store.thread(THREAD).rewind(store.thread(THREAD).get("@~4"))
    again = asyncio.run(run(durability, agent))

    assert (asked.kind, again.output) == ("model_request", "done")
    assert (world.asked, world.done) == (5, ["a", "b"])


def test_a_forked_run_goes_its_own_way_with_its_own_policy(store, durability):
    world = World(["a"], ["b"])
    agent = world.agent(durability, holdfast.once)

    asyncio.run(run(durability, agent))
    store.thread(THREAD).fork("pydantic_ai_run:trial", at="@~3", effects="deny")
    with pytest.raises(holdfast.Conflict) as refused:
        asyncio.run(run(durability, agent, "trial"))

    assert refused.value.code == "effect_denied"
    assert world.done == ["a", "b"]


def test_of_two_workers_only_one_makes_a_run(store, durability):
    world = World(["a"])
    agent = world.agent(durability, holdfast.once)

    async def worker():
        try:
            return (await run(durability, agent)).output
        except holdfast.Conflict as conflict:
            return conflict.code

    async def main():
        return await asyncio.gather(worker(), worker())

    assert sorted(asyncio.run(main())) == ["done", "run_moved"]
    assert world.done == ["a"]


def test_tools_side_by_side_are_resumed_each_on_its_own(store):
    durability = HoldfastDurability(store, tool_order="parallel_ordered_events")
    world = World(["a", "b", "c"])
    begun = []

    async def act(what: str) -> str:
        begun.append(what)
        await asyncio.sleep(0)
        return world.act(what)

    world.trouble["c"] = RuntimeError("x")
    agent = Agent(
        FunctionModel(world.answer),
        name="worker",
        tools=[act],
        capabilities=[durability],
    )

    async def main():
        with pytest.raises(RuntimeError):
            await run(durability, agent)
        return await run(durability, agent)

    assert asyncio.run(main()).output == "done"
    assert sorted(world.done) == ["a", "b", "c"]
    assert (begun.count("c"), world.asked) == (2, 2)


def test_what_an_agent_does_inside_of_a_tool_is_part_of_that_step(store, durability):
    inner, outer = World(), World(["a"], ["b"], ["c"])
    outer.trouble["c"] = RuntimeError("x")
    helper = Agent(
        FunctionModel(inner.answer), name="helper", capabilities=[durability]
    )

    async def act(what: str) -> str:
        said = (await helper.run(what)).output
        return f"{outer.act(what)} {said}"

    agent = Agent(
        FunctionModel(outer.answer),
        name="worker",
        tools=[act],
        capabilities=[durability],
    )

    async def main():
        with pytest.raises(RuntimeError):
            await run(durability, agent)
        return await run(durability, agent)

    result = asyncio.run(main())

    assert (result.output, outer.done) == ("done", ["a", "b", "c"])
    assert (inner.asked, outer.asked) == (4, 4)
    steps = store.thread(THREAD).load()["steps"]
    assert not [step for step in steps if "helper" in step["name"]]


def test_a_step_that_cannot_be_read_is_no_fault_of_the_model(store, durability):
    world = World(["a"])
    agent = world.agent(durability)
    asyncio.run(run(durability, agent))
    state = store.thread(THREAD).load()
    state["steps"][1]["result"] = {"kind": "of another version"}
    store.thread(THREAD).save(state)

    with pytest.raises(holdfast.FormatMismatch, match="rewind it"):
        asyncio.run(run(durability, agent))

    assert (world.asked, world.done) == (2, ["a"])


def test_a_result_that_cannot_be_stored_leaves_a_call_unknown(durability):
    world = World(["a"])

    @holdfast.once
    def act(what: str) -> object:
        world.act(what)
        return object()

    agent = Agent(
        FunctionModel(world.answer),
        name="worker",
        tools=[act],
        capabilities=[durability],
    )

    async def main():
        with pytest.raises(holdfast.Unstorable, match="cannot be stored as JSON"):
            await run(durability, agent)
        with pytest.raises(holdfast.Conflict, match="did not end"):
            await run(durability, agent)
        return await durability.unknown("r")

    [effect] = asyncio.run(main())

    assert (effect.tool, effect.arguments) == ("act", {"what": "a"})
    assert world.done == ["a"]


def test_streamed_runs_and_deadlines_are_recorded_too(store):
    seen = []

    async def hear(_, events):
        seen.extend([type(event).__name__ async for event in events])

    world = World(["a"])

    async def stream(messages, info):
        reply = world.answer(messages, info)
        for part in reply.parts:
            if isinstance(part, TextPart):
                yield part.content
            else:
                yield {0: DeltaToolCall("act", '{"what": "a"}', tool_call_id="c1")}

    durability = HoldfastDurability(store, event_stream_handler=hear)
    world.trouble["a"] = RuntimeError("x")
    agent = Agent(
        FunctionModel(world.answer, stream_function=stream),
        name="worker",
        tools=[world.act],
        capabilities=[durability],
    )

    async def main():
        with pytest.raises(RuntimeError):
            await run(durability, agent, timeout=60)
        heard = len(seen)
        result = await run(durability, agent, timeout=60)
        assert heard < len(seen)
        return result

    assert asyncio.run(main()).output == "done"
    assert (world.asked, world.done) == (2, ["a"])
    roles = [message["kind"] for message in store.thread(THREAD).load()["messages"]]
    assert roles == ["request", "response"] * 2


def test_a_conversation_is_saved_once_by_a_run_that_is_made_again(store, durability):
    world = World(["a"])
    agent = world.agent(durability)

    async def main():
        conversations = HoldfastConversationStore(store)
        first = await run(durability, agent)
        await conversations.save(first)
        again = await run(durability, agent)
        loaded = await conversations.load(again.conversation_id)
        return again.conversation_id == first.conversation_id, len(loaded.messages)

    assert asyncio.run(main()) == (True, 4)


def test_a_run_that_does_not_exist_has_nothing_unknown(durability):
    with pytest.raises(holdfast.NotFound, match="no run"):
        asyncio.run(durability.unknown("none"))
