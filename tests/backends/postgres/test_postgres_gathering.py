"""Saves of many tasks on PostgreSQL are made together, and each for itself."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

import holdfast
from holdfast import Checkpoint, Conflict
from holdfast.testing.trials.scenario import problems_of
from support import databases, outages, servers
from support.cut_connection import Cable
from support.outages import UNANSWERED

TASKS = 40


@pytest.fixture
def place():
    with databases.place(servers.shared(servers.NAMES[-1])) as place:
        yield place


def _run(place, work, **options):
    """What a coroutine makes of an open store."""

    async def opened():
        special = {"schema": place.schema, "pool": (1, 8), "busy_timeout": 30}
        async with holdfast.open_async(place.url, **(special | options)) as store:
            return await work(store)

    return asyncio.run(opened())


async def _begin(store, count=TASKS):
    threads = [store.thread(f"t{n}") for n in range(count)]
    heads = [await thread.save({"n": 0, "log": []}) for thread in threads]
    return threads, heads


def _check(place, expected):
    with place.open() as store:
        found = {name: store.thread(name).load()["n"] for name in expected}
        assert found == expected
        assert problems_of(store) == []


def _statements(place):
    """How many transactions saved something."""
    [(count,)] = place.run("select count(distinct xmin::text) from hf.checkpoint")
    return count


@pytest.mark.parametrize("special", [{}, {"partitions": 4}], ids=["whole", "divided"])
def test_many_tasks_save_with_fewer_transactions_than_saves(place, special):
    async def work(store):
        threads, _ = await _begin(store)
        for n in range(1, 6):
            await asyncio.gather(*(thread.save({"n": n}) for thread in threads))

    _run(place, work, **special)

    _check(place, {f"t{n}": 5 for n in range(TASKS)})
    assert _statements(place) < TASKS + 5 * TASKS / 2


def test_who_follows_is_told_of_all_that_is_saved_together_in_order(place):
    async def follow(store):
        told = []
        while len(told) < 6 * TASKS:
            page = await store.changes(told[-1].seq if told else 0, timeout=60)
            told += page
        return [change.subject for change in told], [change.seq for change in told]

    async def work(store):
        following = asyncio.create_task(follow(store))
        threads, heads = await _begin(store)
        saved = [head.id for head in heads]
        for n in range(1, 6):
            done = await asyncio.gather(*(t.save({"n": n}) for t in threads))
            saved += [checkpoint.id for checkpoint in done]
        return saved, *await following

    saved, told, seqs = _run(place, work)

    assert sorted(told) == sorted(saved)
    assert seqs == sorted(seqs)


def test_a_thread_that_somebody_holds_keeps_no_other_waiting(place):
    async def work(store):
        threads, _ = await _begin(store)
        held = (
            f"select 1 from {place.schema}.thread where name in ('t0', 't1') for update"
        )
        with place.connect() as connection:
            connection.execute(held)
            first = [asyncio.create_task(t.save({"n": 1})) for t in threads[:2] * 3]
            others = [asyncio.create_task(t.save({"n": 1})) for t in threads[2:] * 3]
            await asyncio.gather(*others)
            assert not any(task.done() for task in first)
            connection.rollback()
        return await asyncio.gather(*first)

    saved = _run(place, work)

    assert len({checkpoint.id for checkpoint in saved}) == 6
    _check(place, {f"t{n}": 1 for n in range(TASKS)})


def test_of_rivals_one_wins_and_the_others_saves_are_made(place):
    async def work(store):
        threads, heads = await _begin(store)
        rivals = [threads[0].save({"n": 1}, expect=heads[0]) for _ in range(20)]
        others = [thread.save({"n": 1}) for thread in threads[1:]]
        done = await asyncio.gather(*rivals, *others, return_exceptions=True)
        return done[:20], done[20:]

    rivals, others = _run(place, work)

    assert Counter(type(found) for found in rivals) == {Checkpoint: 1, Conflict: 19}
    assert {type(found) for found in others} == {Checkpoint}
    _check(place, {f"t{n}": 1 for n in range(TASKS)})


def test_an_id_that_is_taken_spoils_no_other_save(place):
    async def work(store):
        threads, heads = await _begin(store)
        saves = [
            thread.save({"n": 1}, id=heads[0].id if thread is threads[0] else None)
            for thread in threads
        ]
        return await asyncio.gather(*saves, return_exceptions=True)

    first, *others = _run(place, work)

    assert first.code == "id_taken"
    assert {type(found) for found in others} == {Checkpoint}
    _check(place, {f"t{n}": min(n, 1) for n in range(TASKS)})


def test_a_server_that_refuses_saves_together_gets_them_one_by_one(place):
    place.open().close()
    place.run("""
        create function hf.refuse() returns trigger language plpgsql as $$ begin
            if current_query() like '%entered as materialized%' then
                raise feature_not_supported;
            end if;
            return null;
        end $$
    """)
    place.run(
        "create trigger refuse before update on hf.thread"
        " for each statement execute function hf.refuse()"
    )

    async def work(store):
        threads, _ = await _begin(store)
        for n in range(1, 4):
            await asyncio.gather(*(thread.save({"n": n}) for thread in threads))

    _run(place, work)

    _check(place, {f"t{n}": 3 for n in range(TASKS)})
    assert _statements(place) == 4 * TASKS


def test_forks_that_save_at_once_share_their_family(place):
    async def work(store):
        await store.thread("main").save({"n": 0, "log": ["x" * 600] * 3})
        forks = [await store.thread("main").fork(f"f{n}") for n in range(12)]
        for n in range(4):
            await asyncio.gather(*(f.append(log=[f"{n}" * 600]) for f in forks))
        return [len((await fork.load())["log"]) for fork in forks]

    assert _run(place, work) == [7] * 12
    _check(place, {f"f{n}": 0 for n in range(12)})


@pytest.mark.parametrize("side", ["request", "answer"])
def test_saves_that_were_made_together_are_made_once_when_the_cable_is_cut(place, side):
    port = int(place.url.rpartition(":")[2].partition("/")[0])
    cable = Cable(port)
    plain = place.url.replace(str(port), str(cable.port))
    through = databases.Place(f"{plain}?sslmode=disable", place.schema)

    async def work(store):
        threads, _ = await _begin(store)
        for n in range(1, 9):
            cable.arm(side, n)
            await asyncio.gather(*(t.append(log=[n]) for t in threads))
            cable.disarm()
        return [(await thread.load())["log"] for thread in threads]

    logs = _run(through, work)
    cable.close()

    assert logs == [list(range(1, 9))] * TASKS
    _check(place, {f"t{n}": 0 for n in range(TASKS)})
    with place.open() as store:
        assert {store.thread(f"t{n}").step for n in range(TASKS)} == {9}


def test_sessions_killed_at_any_moment_lose_nothing_that_was_made_together(place):
    async def work(store):
        threads, _ = await _begin(store)
        kill = (
            "select pg_terminate_backend(pid) from pg_stat_activity"
            f" where query like '%{place.schema}%' and application_name = 'holdfast'"
        )
        for n in range(10):
            saves = [asyncio.create_task(t.append(log=[n])) for t in threads]
            await asyncio.sleep(0.001 * n)
            place.run(kill)
            await asyncio.gather(*saves)
        return [(await thread.load())["log"] for thread in threads]

    assert _run(place, work) == [list(range(10))] * TASKS


def test_those_who_wait_for_others_end_in_time_when_the_server_hangs():
    async def work(store):
        threads, _ = await _begin(store)
        with outages.hung(server):
            saves = [thread.save({"n": 1}) for thread in threads]
            errors = await asyncio.gather(*saves, return_exceptions=True)
        place.run("select 1")  # it goes on
        return errors, await store.thread("after").save({"n": 2})

    with servers.server(servers.NEWEST) as server:
        place = databases.Place(server.url)
        place.open().close()
        errors, saved = _run(place, work, busy_timeout=1)

    assert {error.code for error in errors} <= UNANSWERED
    assert saved.step == 1
