"""Workflows keep their checkpoints in a store, and go on from them."""

import asyncio
from dataclasses import dataclass

import pytest
from agent_framework import (
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowMessage,
)

import holdfast
from adapters.agent_framework.workflows import chain
from holdfast import Unstorable
from holdfast.adapters.agent_framework import HoldfastCheckpointStorage


@pytest.fixture(params=["sync", "async"])
def everywhere(request, place):
    """Runs a coroutine function on each backend, with a blocking or an async store."""
    address, options = place

    async def run(body):
        if request.param == "async":
            async with holdfast.open_async(address, **options) as store:
                await body(HoldfastCheckpointStorage(store))
        else:
            with holdfast.open(address, **options) as store:
                await body(HoldfastCheckpointStorage(store))

    return lambda body: asyncio.run(run(body))


def in_memory(body):
    """Runs a coroutine function with a store and a storage."""
    with holdfast.open(":memory:") as store:
        asyncio.run(body(store, HoldfastCheckpointStorage(store)))


def checkpoint(id_, previous=None, name="wf", **fields):
    given = {"workflow_name": name, "graph_signature_hash": "g", "checkpoint_id": id_}
    return WorkflowCheckpoint(**given, previous_checkpoint_id=previous, **fields)


async def after_a(storage):
    """The first checkpoint in which a has sent its message."""
    saved = await storage.list_checkpoints(workflow_name="wf")
    return next(one for one in saved if "a" in one.messages).checkpoint_id


async def run_until_b_fails(storage):
    workflow, _ = chain(storage, fails=True)
    with pytest.raises(RuntimeError):
        await workflow.run(1)


# --- on every backend -----------------------------------------------------------------


def test_a_workflow_that_failed_goes_on_without_repeating_what_was_done(everywhere):
    async def body(storage):
        await run_until_b_fails(storage)
        latest = await storage.get_latest(workflow_name="wf")
        workflow, (a, b, c) = chain(storage)

        result = await workflow.run(checkpoint_id=latest.checkpoint_id)

        assert result.get_outputs() == [4]
        assert (a.runs, b.runs, c.runs) == (1, 1, 1)
        saved = await storage.list_checkpoints(workflow_name="wf")
        ids = await storage.list_checkpoint_ids(workflow_name="wf")
        assert [one.checkpoint_id for one in saved] == ids
        lineage = [None, *ids[:-1]]
        assert [one.previous_checkpoint_id for one in saved] == lineage

    everywhere(body)


def test_the_six_methods_keep_their_contract(everywhere):
    async def body(storage):
        first = checkpoint("1", state={"n": [1]}, metadata={"by": "me"})
        assert await storage.save(first) == "1"
        await storage.save(checkpoint("2", "1", iteration_count=1))
        await storage.save(checkpoint("other", name="wf/2"))

        first.state["n"].append(2)  # the stored one is a copy
        loaded = await storage.load("1")
        assert loaded == checkpoint(
            "1", state={"n": [1]}, metadata={"by": "me"}, timestamp=first.timestamp
        )
        loaded.state["n"].append(3)
        assert (await storage.load("1")).state == {"n": [1]}
        assert (await storage.get_latest(workflow_name="wf")).checkpoint_id == "2"
        assert await storage.get_latest(workflow_name="w") is None
        assert await storage.list_checkpoint_ids(workflow_name="wf/2") == ["other"]

        assert await storage.delete("2")
        assert not await storage.delete("2")
        assert (await storage.get_latest(workflow_name="wf")).checkpoint_id == "1"
        assert await storage.delete("1")
        assert await storage.list_checkpoints(workflow_name="wf") == []
        for missing in ("1", "", "oth", "@"):
            with pytest.raises(WorkflowCheckpointException, match="No checkpoint"):
                await storage.load(missing)

    everywhere(body)


def test_two_workers_that_resume_one_run_lose_nothing(everywhere):
    async def body(storage):
        await run_until_b_fails(storage)
        latest = (await storage.get_latest(workflow_name="wf")).checkpoint_id
        before = len(await storage.list_checkpoint_ids(workflow_name="wf"))

        results = await asyncio.gather(
            *(chain(storage)[0].run(checkpoint_id=latest) for _ in range(3))
        )

        assert [result.get_outputs() for result in results] == [[4]] * 3
        saved = await storage.list_checkpoints(workflow_name="wf")
        assert len(saved) == before + 3 * 2
        previous = [one.previous_checkpoint_id for one in saved]
        assert previous.count(latest) == 3

    everywhere(body)


def test_workers_with_stores_of_their_own_lose_nothing(place):
    address, options = place
    if address == ":memory:":
        pytest.skip("each store has a memory of its own")

    async def work(storage, worker):
        previous = "start"
        for number in range(10):
            given = checkpoint(f"{worker}{number}", previous, state={"by": worker})
            previous = await storage.save(given)

    async def body(one, two):
        await one.save(checkpoint("start"))
        await asyncio.gather(work(one, "x"), work(two, "y"))
        for storage in (one, two):
            for worker in "xy":
                last = await storage.load(f"{worker}9")
                assert last.state == {"by": worker}
                assert last.previous_checkpoint_id == f"{worker}8"
            ids = await storage.list_checkpoint_ids(workflow_name="wf")
            assert len(ids) == 21

    with (
        holdfast.open(address, **options) as one,
        holdfast.open(address, **options) as two,
    ):
        storages = (HoldfastCheckpointStorage(store) for store in (one, two))
        asyncio.run(body(*storages))
        assert len(one.threads(prefix="workflow:wf/")) == 2
        assert one.verify().ok


# --- lineage --------------------------------------------------------------------------


def test_each_run_is_a_thread_and_a_run_from_the_middle_is_a_fork():
    async def body(store, storage):
        workflow, _ = chain(storage)
        await workflow.run(1)
        second = await after_a(storage)
        await chain(storage)[0].run(checkpoint_id=second)
        await chain(storage)[0].run(5)

        third, fork, run = store.threads(prefix="workflow:wf/")
        assert fork.forked_from.checkpoint == second
        assert fork.forked_from.thread == run.id
        assert (third.forked_from, third.head.step) == (None, run.head.step)
        line = [one.id for one in store.thread(fork.id).history()]
        assert line[2] == second

    in_memory(body)


def test_a_run_that_was_rewound_or_edited_in_the_store_goes_on_from_there():
    async def body(store, storage):
        await chain(storage)[0].run(1)
        [run] = store.threads()
        thread = store.thread(run.id)
        thread.rewind(await after_a(storage))
        rewound = await storage.get_latest(workflow_name="wf")
        assert rewound.messages["a"][0].data == 2

        state = thread.load()
        state["messages"][0]["data"] = 40
        edited = thread.save(state)
        latest = await storage.get_latest(workflow_name="wf")
        result = await chain(storage)[0].run(checkpoint_id=latest.checkpoint_id)

        assert (latest.checkpoint_id, latest.previous_checkpoint_id) == (
            edited.id,
            rewound.checkpoint_id,
        )
        assert result.get_outputs() == [42]
        assert thread.head.parent != edited.id  # two steps later
        assert thread.head.step == edited.step + 2

    in_memory(body)


def test_a_checkpoint_whose_previous_one_is_gone_begins_a_run():
    async def body(store, storage):
        await storage.save(checkpoint("2", "pruned long ago"))

        loaded = await storage.load("2")

        assert loaded.previous_checkpoint_id == "pruned long ago"
        assert store.thread("workflow:wf/2").step == 1

    in_memory(body)


def test_a_checkpoint_is_saved_once_and_never_replaced():
    async def body(store, storage):
        given = checkpoint("1", state={"a": 1})
        await storage.save(given)
        await storage.save(given)
        assert store.stats().checkpoints == 1

        with pytest.raises(WorkflowCheckpointException, match="taken by other content"):
            await storage.save(checkpoint("1", state={"a": 2}))

    in_memory(body)


def test_messages_come_back_by_the_name_under_which_they_were_given():
    sent = [WorkflowMessage(n, source_id="a") for n in range(3)]
    given = {"b": sent[:1], "empty": [], "a": sent[1:]}

    async def body(_, storage):
        await storage.save(checkpoint("1", messages=given))
        assert (await storage.load("1")).messages == given

    in_memory(body)


# --- names ----------------------------------------------------------------------------


NAMES = ["wf", "wf/", "wf%2F", "w:f", "ü ", "", "\0", "\x1f", "~", "x" * 700]


def test_workflows_of_any_name_are_kept_apart():
    async def body(store, storage):
        for number, name in enumerate(NAMES):
            await storage.save(checkpoint(f"id{number}", name=name))

        for number, name in enumerate(NAMES):
            ids = await storage.list_checkpoint_ids(workflow_name=name)
            assert ids == [f"id{number}"]
        assert store.verify().ok

    in_memory(body)


def test_scopes_do_not_see_each_other():
    async def body(store, _):
        acme = HoldfastCheckpointStorage(store, scope="acme")
        other = HoldfastCheckpointStorage(store, scope="other")
        await acme.save(checkpoint("1", state={"of": "acme"}))
        await other.save(checkpoint("1", state={"of": "other"}))

        assert (await acme.load("1")).state == {"of": "acme"}
        assert (await other.get_latest(workflow_name="wf")).state == {"of": "other"}
        await other.delete("1")
        assert await other.list_checkpoint_ids(workflow_name="wf") == []
        assert await acme.list_checkpoint_ids(workflow_name="wf") == ["1"]

    in_memory(body)


def test_an_address_is_opened_and_closed(tmp_path):
    async def body():
        for id_ in ("1", "2"):
            storage = HoldfastCheckpointStorage(tmp_path / "agents.db", scope="a")
            await storage.save(checkpoint(id_))
            await storage.close()
            with pytest.raises(holdfast.Closed):
                await storage.load(id_)

    asyncio.run(body())
    with holdfast.open(tmp_path / "agents.db", scope="a") as store:
        assert len(store.threads(prefix="workflow:wf/")) == 2


# --- size and objects -----------------------------------------------------------------


def test_what_has_not_changed_costs_nothing():
    async def body(store, storage):
        large = {f"document {n}": "x" * 20_000 for n in range(5)}
        executors = {"a": {"log": ["y" * 400] * 100, "n": 0}}
        previous = None
        for number in range(10):
            executors["a"]["log"].append(f"line {number}")
            executors["a"]["n"] = number
            state = {**large, "_executor_state": executors}
            await storage.save(checkpoint(f"c{number}", previous, state=state))
            previous = f"c{number}"

        assert (await storage.load("c9")).state == state
        state_size = store.thread("workflow:wf/c0").head.size
        assert state_size > 140_000
        assert store.stats().stored_bytes < 1.1 * state_size

    in_memory(body)


@dataclass
class Order:
    """A class that is missing in `allow`."""

    number: int


def test_a_class_that_is_not_allowed_is_named_and_nothing_is_saved():
    async def body(store, storage):
        given = checkpoint("1", state={"orders": [Order(1)]})

        with pytest.raises(Unstorable, match=r"Order.*allow=\[Order\]") as refused:
            await storage.save(given)

        assert "orders" in str(refused.value)
        assert store.stats().checkpoints == 0
        allowing = HoldfastCheckpointStorage(store, allow=[Order])
        await allowing.save(given)
        assert (await allowing.load("1")).state == {"orders": [Order(1)]}
        # It is not skipped where the class is not known.
        for read in (storage.load("1"), storage.get_latest(workflow_name="wf")):
            with pytest.raises(WorkflowCheckpointException, match=r"allow=\["):
                await read
        with pytest.raises(WorkflowCheckpointException, match="decoded"):
            await storage.list_checkpoints(workflow_name="wf")

    in_memory(body)
