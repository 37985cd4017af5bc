"""The SDK's own compaction over a session: all of it in one checkpoint."""

import asyncio
from types import SimpleNamespace

import pytest
from agents import Agent, OpenAIResponsesCompactionSession, Runner
from agents.tracing import set_tracing_disabled

from adapters.openai_agents.scripted_model import Scripted, says
from adapters.openai_agents.sessions import (
    VERSION,
    call,
    output,
    reply,
    talk,
    texts,
    user,
)
from holdfast.adapters.openai_agents import HoldfastSession
from support.programs import run_program

set_tracing_disabled(True)

SUMMARY = {"type": "compaction", "id": "cmp_1", "encrypted_content": "all of it"}
# Earlier versions of the SDK clear a session and add what is left, in two steps. By
# version: should a later one ask for other private methods, these tests fail.
atomic = pytest.mark.skipif(VERSION < (0, 24), reason="needs an SDK that asks for it")


class Service:
    """What compacts, in place of OpenAI's."""

    def __init__(self):
        self.asked = []
        self.meanwhile = None
        self.responses = SimpleNamespace(compact=self.compact)

    async def compact(self, **request):
        self.asked.append(request)
        if self.meanwhile is not None:
            await self.meanwhile
        return SimpleNamespace(output=[dict(SUMMARY)], usage=None)


def compacting(session, service, at_least=4):
    def is_time(context):
        return len(context["session_items"]) >= at_least

    return OpenAIResponsesCompactionSession(
        "chat", session, client=service, should_trigger_compaction=is_time
    )


@atomic
def test_compaction_on_demand_replaces_all_items_in_one_checkpoint(place):
    async def body(session):
        await session.add_items([user("one"), reply("two"), user("three"), reply("4")])
        await compacting(session, Service()).run_compaction({"force": True})

        assert await session.get_items() == [SUMMARY]
        assert [c.kind for c in await session.history()] == ["compaction", "save"]
        await session.undo()
        assert texts(await session.get_items()) == ["one", "two", "three", "4"]

    talk(body, place, "async")


def test_compaction_by_any_version_of_the_sdk_leaves_what_it_should():
    async def body(session):
        await session.add_items([user("one"), reply("two"), user("three"), reply("4")])
        await compacting(session, Service()).run_compaction({"force": True})

        assert await session.get_items() == [SUMMARY]

    talk(body)


@atomic
def test_compaction_after_a_run_replaces_what_the_model_saw_in_one_checkpoint():
    async def body(session):
        service = Service()
        agent = Agent(name="a", model=Scripted(says("one"), says("two")))
        long = compacting(session, service)
        await Runner.run(agent, "first", session=long)
        assert service.asked == []
        await Runner.run(agent, "second", session=long)

        assert len(service.asked) == 1
        assert await session.get_items() == [SUMMARY]
        assert (await session.history())[0].kind == "compaction"

    talk(body)


@atomic
def test_items_in_front_of_what_the_model_saw_are_retained():
    async def body(session):
        await session.add_items([user(f"old {n}") for n in range(5)])
        session.session_settings.limit = 2
        service = Service()
        agent = Agent(name="a", model=Scripted(says("answer")))
        long = compacting(session, service, at_least=2)
        await Runner.run(agent, "new", session=long)

        found = await session.get_items(limit=-1)
        assert texts(found[:3]) == ["old 0", "old 1", "old 2"]
        assert found[3:] == [SUMMARY]

    talk(body)


@atomic
def test_what_somebody_adds_meanwhile_is_never_compacted_away(memory):
    async def main():
        session, other = (HoldfastSession("chat", memory) for _ in range(2))
        service = Service()
        service.meanwhile = other.add_items([user("me too")])
        agent = Agent(name="a", model=Scripted(says("answer")))
        await Runner.run(agent, "new", session=compacting(session, service, 2))

        assert service.asked
        assert texts(await session.get_items()) == ["new", "answer", "me too"]

    asyncio.run(main())


@pytest.mark.processes
@atomic
def test_killed_at_any_write_of_a_compaction_all_items_are_old_or_new(tmp_path):
    [found] = run_program("compacting", tmp_path)

    assert found[0] == "old"
    assert found[-1] == "new"
    assert set(found) == {"old", "new"}
    assert len(found) > 5


# --- what the SDK asks for, asked by hand ---------------------------------------------


def test_a_snapshot_is_replaced_only_while_the_session_ends_with_it(place):
    async def body(session):
        items = [user("one"), call(), output(), user("two"), reply("x" * 500)]
        await session.add_items(items)
        whole = await session._get_compaction_snapshot(10)
        part = await session._get_compaction_snapshot(2)
        assert (whole.items, whole.complete) == (items, True)
        assert (part.items, part.complete) == (items[3:], False)

        assert not await part.replace_suffix(2, [SUMMARY])
        assert await part.replace_suffix(1, [SUMMARY])
        assert await session.get_items() == [*items[:4], SUMMARY]
        assert not await whole.replace_suffix(0, [SUMMARY])
        assert not await part.replace_suffix(0, [SUMMARY])

    talk(body, place)


def test_expired_items_go_from_the_front_with_a_replacement():
    async def body(session):
        items = [user("old 1"), user("old 2"), user("kept"), user("old 3"), user("x")]
        await session.add_items(items)
        snapshot = await session._get_compaction_snapshot(
            1, prune_prefix=lambda item: item["content"].startswith("old")
        )

        assert await snapshot.replace_suffix(0, [SUMMARY])
        assert await session.get_items() == [*items[2:4], SUMMARY]

    talk(body)


def test_when_all_in_front_is_expired_only_the_replacement_stays():
    async def body(session):
        await session.add_items([user("old 1"), user("old 2"), user("x")])
        snapshot = await session._get_compaction_snapshot(
            1, prune_prefix=lambda item: True
        )

        assert await snapshot.replace_suffix(0, [SUMMARY])
        assert await session.get_items() == [SUMMARY]

    talk(body)


def test_a_session_that_is_not_there_yet_is_replaced():
    async def body(session):
        assert await session._atomic_replace_items([SUMMARY])
        assert await session.get_items() == [SUMMARY]

    talk(body)


def test_a_subclass_that_changes_items_is_not_passed_by(memory):
    class Shouting(HoldfastSession):
        async def add_items(self, items, **more):
            shouted = [item | {"content": item["content"].upper()} for item in items]
            await super().add_items(shouted, **more)

    async def main():
        session = Shouting("chat", memory)
        await session.add_items([user("one")])

        assert await session._get_compaction_snapshot(10) is None
        assert await session._atomic_replace_items([user("two")]) is False
        assert texts(await session.get_items()) == ["ONE"]

    asyncio.run(main())


def test_a_replacement_in_a_transaction_is_part_of_it():
    async def body(session):
        await session.add_items([user("one"), user("two")])
        async with session.transaction():
            await session.add_items([user("three")])
            assert await session._get_compaction_snapshot(10) is None
            assert await session._atomic_replace_items([SUMMARY])
            await session.add_items([user("four")])

        assert await session.get_items() == [SUMMARY, user("four")]
        assert len(await session.history()) == 2

    talk(body)
