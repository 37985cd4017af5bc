"""Automatic checkpoints in a thread: what their hook for errors may do."""

import asyncio
from threading import Event

import holdfast
from holdfast import Agent
from holdfast.testing import raises

PATIENCE = 120


def test_the_hook_for_errors_may_stop_the_loop(memory):
    memory.agents.save(Agent(id="a"))
    stopped = Event()
    calls = []

    def stop(agent, error):
        calls.append(agent)
        saving.stop()
        stopped.set()

    saving = memory.agents.autosave("ghost", "a", every=0.001, on_error=stop)
    saving.start()
    assert stopped.wait(PATIENCE)
    saving.stop()

    # Once in the loop, and once for the last checkpoint that stopping takes.
    assert calls == ["ghost", "ghost"]
    assert len(memory.agents.checkpoints("a")) == 1


def test_an_awaited_store_is_closed_after_the_loop_of_its_autosave(tmp_path):
    async def begin():
        store = await holdfast.open_async(tmp_path / "agents.db")
        await store.agents.save(Agent(id="a"))
        await store.agents.autosave("a", every=3600).start()
        return store

    loop = asyncio.new_event_loop()
    store = loop.run_until_complete(begin())

    async def intrude():
        with raises(holdfast.HoldfastError, "other_loop"):
            await store.agents.close()

    asyncio.run(intrude())
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.wait(tasks))
    loop.close()
    asyncio.run(store.close())
