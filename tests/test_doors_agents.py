"""Agents, conversations and documents through the async API."""

import asyncio

import pytest

import holdfast
from holdfast import Agent, Message


def test_agents_conversations_and_documents_are_awaited():
    async def main():
        async with holdfast.open_async(":memory:") as store:
            await store.agents.save(Agent(id="a"))
            await store.conversations.create("c", agent="a")
            additions = [
                store.conversations.add("c", Message.user(f"{n}")) for n in range(50)
            ]
            await asyncio.gather(*additions)
            made = await store.agents.checkpoint("a")
            await store.conversations.delete("c")
            await store.agents.restore("a", made)
            await store.documents.save("d", "text")
            talk = await store.conversations.load("c")
            return [m.content for m in talk.messages]

    said = asyncio.run(main())

    # Those of one task come in its order.
    assert said == [f"{n}" for n in range(50)]


def test_starting_twice_is_one_task_and_the_store_ends_it():
    async def main():
        before = len(asyncio.all_tasks())
        async with holdfast.open_async(":memory:") as store:
            await store.agents.save(Agent(id="a"))
            saving = store.agents.autosave("a", every=3600)
            await saving.start()
            await saving.start()
            assert len(asyncio.all_tasks()) == before + 1
            await saving.stop()
            assert len(asyncio.all_tasks()) == before
            assert len(await store.agents.checkpoints("a")) == 1
            await saving.start()
        return len(asyncio.all_tasks()) - before

    assert asyncio.run(main()) == 0


def test_a_stop_that_is_cancelled_still_takes_the_last_checkpoint():
    async def main():
        async with holdfast.open_async(":memory:") as store:
            await store.agents.save(Agent(id="a"))
            saving = store.agents.autosave("a", every=3600)
            await saving.start()
            stopping = asyncio.create_task(saving.stop())
            await asyncio.sleep(0)
            stopping.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stopping
            await saving.stop()
            return len(await store.agents.checkpoints("a"))

    assert asyncio.run(main()) == 1
