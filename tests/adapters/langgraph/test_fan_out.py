"""Tasks that run at once on PostgreSQL: their writes do not get in each other's way."""

import asyncio

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.func import entrypoint, task

from adapters.langgraph.graphs import thread
from holdfast.adapters.langgraph import HoldfastSaver

# Enough for the version that took its locks in two orders to fail every time.
ROUNDS, TASKS = 12, 6


def test_tasks_that_write_while_their_thread_begins_wait_in_no_circle(server, schema):
    """They find no thread, then one with a head, which they hold before they write."""

    async def begin(saver, name):
        config = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        first = empty_checkpoint()
        place = {
            "configurable": {**config["configurable"], "checkpoint_id": first["id"]}
        }
        writes = [
            saver.aput_writes(place, [("n", n)], f"task {n}") for n in range(TASKS)
        ]
        await asyncio.gather(*writes, saver.aput(config, first, {"step": -1}, {}))
        found = await saver.aget_tuple(config)
        return sorted(value for _, _, value in found.pending_writes)

    async def run():
        async with HoldfastSaver.from_conn_string(server, schema=schema) as saver:
            return [await begin(saver, f"t{n}") for n in range(ROUNDS)]

    assert asyncio.run(run()) == [list(range(TASKS))] * ROUNDS


@task
async def inner(number):
    return number


@task
async def outer(number):
    return await inner(number)


def test_nested_tasks_at_once_all_come_back(server, schema):
    async def run():
        async with HoldfastSaver.from_conn_string(server, schema=schema) as saver:

            @entrypoint(checkpointer=saver)
            async def flow(width):
                return sum(await asyncio.gather(*map(outer, range(width))))

            runs = [flow.ainvoke(10, thread(f"t{n}")) for n in range(4)]
            return await asyncio.gather(*runs)

    assert asyncio.run(run()) == [sum(range(10))] * 4
