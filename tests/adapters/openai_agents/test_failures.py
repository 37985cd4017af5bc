"""Failures around a session: cancelled callers, concurrent writers, full disks."""

import asyncio
import os
import threading

import pytest

import holdfast
from adapters.openai_agents.sessions import reply, texts, user
from holdfast import Conflict, HoldfastError, Retention
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.testing import raises
from holdfast.testing.faults import Fault, FaultyDisk, disk_full
from support.programs import run_program
from support.stores import backend_of

pytestmark = pytest.mark.processes

# --- ids ------------------------------------------------------------------------------


def test_an_id_given_again_is_not_taken_for_an_earlier_pop(path):
    ids = ["added", "popped", "popped"]

    async def main():
        with holdfast.open(path, new_id=lambda: ids.pop(0)) as store:
            session = HoldfastSession("s", store)
            await session.add_items([user("one"), user("two"), user("three")])
            await session.pop_item()
            store.prune(Retention(last=1))

            # What the first pop was made of is gone, so they cannot be compared.
            with raises(Conflict, "id_taken"):
                await session.pop_item()

            assert texts(await session.get_items()) == ["one", "two"]

    asyncio.run(main())


# --- cancelled ------------------------------------------------------------------------


class Slow:
    """A store whose commits wait for a word."""

    def __init__(self, store):
        self.begun, self.go = threading.Event(), threading.Event()
        self.error = None
        backend = backend_of(store)
        self.commit, backend.commit = backend.commit, self._commit

    async def _commit(self, writes):
        self.begun.set()
        assert self.go.wait(120)
        if self.error is not None:
            raise self.error
        return await self.commit(writes)


CHANGES = {
    "add": lambda session: session.add_items([user("three")]),
    "pop": lambda session: session.pop_item(),
    "clear": lambda session: session.clear_session(),
    "replace": lambda session: session._atomic_replace_items([user("new")]),
}
AFTER = {
    "add": ["one", "two", "three"],
    "pop": ["one"],
    "clear": [],
    "replace": ["new"],
}


async def cancelled(store, change):
    """Cancel a change twice while it is being saved; the error the caller got."""
    session = HoldfastSession("s", store)
    await session.add_items([user("one"), user("two")])
    slow = Slow(store)
    yield slow
    task = asyncio.ensure_future(CHANGES[change](session))
    await asyncio.to_thread(slow.begun.wait, 120)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    slow.go.set()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    backend_of(store).commit = slow.commit
    yield caught.value
    yield texts(await session.get_items())


@pytest.mark.parametrize("change", CHANGES)
def test_a_cancelled_caller_hears_of_it_when_the_change_is_made(change, memory):
    async def main():
        steps = cancelled(memory, change)
        await anext(steps)
        error = await anext(steps)

        assert error.__cause__ is None
        assert error.__notes__ == ["the change was made before"]
        assert await anext(steps) == AFTER[change]

    asyncio.run(main())


@pytest.mark.parametrize("change", CHANGES)
def test_a_cancelled_caller_is_told_that_the_change_failed(change, memory):
    async def main():
        steps = cancelled(memory, change)
        (await anext(steps)).error = HoldfastError("no space", code="disk_full")
        error = await anext(steps)

        assert error.__cause__.code == "disk_full"
        assert error.__notes__ == ["the change was not made"]
        assert await anext(steps) == ["one", "two"]

    asyncio.run(main())


def test_a_caller_of_an_awaited_store_who_is_cancelled_finds_the_items(place):
    url, options = place

    async def main():
        async with holdfast.open_async(url, **options) as store:
            session = HoldfastSession("s", store)
            adding = asyncio.ensure_future(session.add_items([user("one")]))
            await asyncio.sleep(0)
            adding.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await adding

            assert caught.value.__notes__ == ["the change was made before"]
            assert texts(await session.get_items()) == ["one"]

    asyncio.run(main())


def test_a_read_can_be_cancelled_and_the_session_goes_on(tmp_path):
    async def main():
        async with holdfast.open_async(tmp_path / "a.db") as store:
            session = HoldfastSession("s", store)
            await session.add_items([user("one")])
            reading = asyncio.ensure_future(session.get_items())
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading

            assert texts(await session.get_items()) == ["one"]

    asyncio.run(main())


# --- rivals ---------------------------------------------------------------------------


def test_two_processes_at_once_lose_and_mix_nothing(tmp_path):
    [[found, counted, is_sound]] = run_program("rival_sessions", tmp_path / "a.db")

    assert is_sound
    assert len(found) == counted == 2 * (40 * 3 - 5)
    for name in ("ann", "bob"):
        numbers = [int(text.split()[1]) for text in found if text.startswith(name)]
        assert numbers == sorted(numbers)


# --- a full disk ----------------------------------------------------------------------


def test_on_a_full_disk_nothing_of_a_batch_is_kept_and_it_can_be_added_later(tmp_path):
    disk = FaultyDisk(f"full {os.getpid()}", syncing=False)

    async def main(session):
        await session.add_items([user("one")])
        disk.arm(Fault(at=1, effect=disk_full, lasting=True))
        with pytest.raises(HoldfastError) as failed:
            await session.add_items([user("two"), reply("x" * 10_000)])
        assert failed.value.code == "disk_full"
        disk.heal()
        assert texts(await session.get_items()) == ["one"]
        await session.add_items([user("two")])
        assert texts(await session.get_items()) == ["one", "two"]

    with disk.open(str(tmp_path / "a.db")) as store:
        asyncio.run(main(HoldfastSession("s", store)))
    disk.remove()
