"""A session stores items as the SDK's own sessions do, and offers more."""

import asyncio
import copy

import pytest
from agents import SessionSettings, SQLiteSession
from agents.memory import Session

import holdfast
from adapters.openai_agents.sessions import (
    VERSION,
    call,
    output,
    reply,
    talk,
    texts,
    user,
)
from holdfast import Conflict, NotFound, Unstorable
from holdfast.adapters.openai_agents import HoldfastSession, SessionClosed
from support.stores import backend_of


@pytest.fixture(params=["sync", "async"])
def everywhere(request, place):
    """Runs a coroutine function on each backend, with the sync and async API."""
    return lambda body, **options: talk(body, place, request.param, **options)


# --- on every backend -----------------------------------------------------------------


def test_items_come_back_in_their_order_and_the_last_few_on_demand(everywhere):
    turns = [[user(f"q{n}"), reply(f"a{n} " + "x" * 300)] for n in range(30)]

    async def body(session):
        for turn in turns:
            await session.add_items(turn)

        items = await session.get_items()
        assert items == [item for turn in turns for item in turn]
        for limit in (0, 1, 3, 59, 60, 1000):
            assert await session.get_items(limit) == items[60 - min(limit, 60) :]

    everywhere(body)


def test_the_last_item_is_popped_and_others_follow(everywhere):
    async def body(session):
        assert await session.pop_item() is None
        await session.add_items([user("one"), call(), output(), reply("two " * 200)])

        assert await session.pop_item() == reply("two " * 200)
        assert await session.pop_item() == output()
        await session.add_items([output(text="other"), reply("three")])
        assert await session.get_items() == [
            user("one"),
            call(),
            output(text="other"),
            reply("three"),
        ]

    everywhere(body)


def test_a_cleared_session_is_empty_goes_on_and_can_be_undone(everywhere):
    async def body(session):
        await session.clear_session()
        await session.add_items([user("one"), reply("two")])
        await session.clear_session()
        assert await session.get_items() == []

        await session.undo()
        assert texts(await session.get_items()) == ["one", "two"]
        await session.clear_session()
        await session.add_items([user("three")])
        assert texts(await session.get_items()) == ["three"]

    everywhere(body)


def test_a_fork_goes_its_own_way_and_a_rewind_comes_back(everywhere):
    async def body(session):
        await session.add_items([user("one"), reply("two")])
        [first] = await session.history()
        await session.add_items([user("three")])

        other = await session.fork("other", at=first)
        await other.add_items([user("four")])
        assert texts(await other.get_items()) == ["one", "two", "four"]
        assert texts(await session.get_items()) == ["one", "two", "three"]
        await session.rewind(first)
        assert texts(await session.get_items()) == ["one", "two"]
        await session.undo()
        assert texts(await session.get_items()) == ["one", "two", "three"]

    everywhere(body)


def test_all_of_a_transaction_is_one_checkpoint(everywhere):
    async def body(session):
        await session.add_items([user("one"), reply("two"), reply("three")])

        async with session.transaction():
            assert await session.pop_item() == reply("three")
            await session.add_items([user("four")])
            await session.add_items([reply("five")])
            assert texts(await session.get_items(3)) == ["two", "four", "five"]
            assert texts(await session.get_items(2)) == ["four", "five"]

        assert texts(await session.get_items()) == ["one", "two", "four", "five"]
        assert len(await session.history()) == 2

    everywhere(body)


def test_a_deleted_session_turns_late_writers_away(everywhere):
    async def body(session):
        await session.add_items([user("one")])

        assert await session.delete() is True
        assert await session.delete() is False
        assert await session.get_items() == []
        assert await session.pop_item() is None
        with pytest.raises(Conflict, match="clear_session"):
            await session.add_items([user("late")])
        await session.clear_session()
        await session.add_items([user("two")])
        assert texts(await session.get_items()) == ["two"]

    everywhere(body)


def test_what_two_workers_add_at_once_is_all_there(everywhere):
    async def body(session):
        async def work(name):
            for n in range(10):
                await session.add_items([user(f"{name}{n}"), reply(f"{name}{n}")])

        await asyncio.gather(*(work(name) for name in "abc"))

        items = texts(await session.get_items())
        assert len(items) == 60
        assert items[::2] == items[1::2]
        for name in "abc":
            assert [t for t in items[::2] if t[0] == name] == [
                f"{name}{n}" for n in range(10)
            ]

    everywhere(body)


# --- exactly as they were -------------------------------------------------------------

STRANGE = {
    "nul": "a\0b",
    "surrogate": "half of one: \ud83d",
    "emoji": "👩‍👩‍👧 ü 漢字",
    "numbers": [0, -1, 2**80, 1.5, 1e300],
    "not json": [float("inf"), (1, 2), b"\xff"],
    "looks like ours": {"$hf.tuple": [1]},
    "": {"": None},
}


def test_items_come_back_exactly_as_they_were():
    items = [
        user("plain"),
        {"role": "user", "content": [{"type": "input_text", "text": "a\0\ud83d"}]},
        {"type": "unknown_item", "strange": STRANGE},
        {"holdfast": 1, "role": "user", "content": "not one of ours", "x": 1},
        {},
    ]
    given = copy.deepcopy(items)

    async def body(session):
        await session.add_items(items)

        found = await session.get_items()
        assert found == given
        assert [list(item) for item in found] == [list(item) for item in given]
        found[0]["content"] = "changed by the caller"
        assert await session.get_items() == given
        for item in reversed(given):
            assert await session.pop_item() == item

    talk(body)


def test_a_huge_item_is_kept_and_popped():
    image = {"type": "input_image", "image_url": "data:" + "A" * 8_000_000}
    huge = {"role": "user", "content": [image]}

    async def body(session):
        await session.add_items([user("look"), huge, reply("nice")])

        assert await session.get_items(2) == [huge, reply("nice")]
        assert await session.pop_item() == reply("nice")
        assert await session.pop_item() == huge
        assert await session.get_items() == [user("look")]

    talk(body)


@pytest.mark.parametrize("item", ["text", None, ["role"], object()])
def test_what_is_no_item_is_refused_with_its_place_and_nothing_is_added(item):
    async def body(session):
        with pytest.raises(Unstorable, match=r"items\[1\]"):
            await session.add_items([user("one"), item])

        assert await session.get_items() == []

    talk(body)


def test_of_a_batch_that_cannot_be_stored_nothing_is_added():
    async def body(session):
        await session.add_items([user("one")])
        with pytest.raises(Unstorable, match="content"):
            await session.add_items([user("two"), user(object())])

        assert texts(await session.get_items()) == ["one"]

    talk(body)


# --- as the SDK's own sessions --------------------------------------------------------


def script(session_of):
    """What a session answers to many calls."""

    async def run():
        session = session_of()
        told = []
        await session.add_items([])
        told.append(await session.get_items())
        await session.add_items([user("one"), reply("two"), call(), output()])
        limits = (None, 0, 1, 3, 4, 100, -1)
        told += [await session.get_items(limit) for limit in limits]
        told.append(await session.pop_item())
        told.append(await session.get_items(2))
        session.session_settings = SessionSettings(limit=2)
        told.append(await session.get_items())
        told.append(await session.get_items(limit=1))
        session.session_settings = None
        told.append(await session.get_items())
        await session.clear_session()
        told.append(await session.pop_item())
        told.append(await session.get_items())
        await session.add_items([user("again")])
        told.append(await session.get_items())
        session.close()
        return told

    return asyncio.run(run())


def test_every_answer_is_that_of_the_sdks_own_session(tmp_path):
    ours = script(lambda: HoldfastSession("s", tmp_path / "ours.db"))

    assert ours == script(lambda: SQLiteSession("s", tmp_path / "theirs.db"))


def test_it_is_a_session_to_the_sdk():
    async def body(session):
        assert isinstance(session, Session)
        assert session.session_id == "chat"
        assert session.session_settings == SessionSettings()

    talk(body)


@pytest.mark.parametrize("settings", [SessionSettings(limit=2), {"limit": 2}])
def test_the_limit_of_the_settings_holds_where_none_is_given(settings):
    async def body(session):
        await session.add_items([user("one"), user("two"), user("three")])

        assert texts(await session.get_items()) == ["two", "three"]
        assert texts(await session.get_items(limit=1)) == ["three"]
        assert len(await session.get_items(limit=-1)) == 3

    talk(body, session_settings=settings)


@pytest.mark.parametrize("settings", [{"limit": 2, "limits": 2}, [("limit", 2)]])
def test_settings_that_the_sdk_refuses_are_refused_with_its_error(settings, memory):
    with pytest.raises(TypeError):
        HoldfastSession("s", memory, session_settings=settings)
    if VERSION >= (0, 20):
        with pytest.raises(TypeError):
            SQLiteSession("s", session_settings=settings)


def test_sessions_of_one_store_do_not_see_one_another(memory):
    async def main():
        one, two = (HoldfastSession(id_, memory) for id_ in ("one", "two"))
        await one.add_items([user("for one")])
        await two.add_items([user("for two")])
        await one.clear_session()

        assert texts(await two.get_items()) == ["for two"]

    asyncio.run(main())


def test_a_session_opened_from_an_address_closes_its_store(tmp_path):
    async def main():
        path = tmp_path / "agents.db"
        async with HoldfastSession("s", path, durability="normal") as session:
            await session.add_items([user("one")])
        for refused in (session.get_items(), session.add_items([]), session.pop_item()):
            with pytest.raises(holdfast.Closed):
                await refused
        async with HoldfastSession("s", path) as again:
            assert texts(await again.get_items()) == ["one"]

    asyncio.run(main())


def test_the_scope_of_a_store_that_was_given_is_used(memory):
    said = {"role": "user", "content": "hello"}
    asyncio.run(HoldfastSession("s", memory, scope="acme").add_items([said]))

    assert asyncio.run(HoldfastSession("s", memory).get_items()) == []
    same = HoldfastSession("s", memory, scope="acme")
    assert asyncio.run(same.get_items()) == [said]
    with pytest.raises(holdfast.Unstorable, match="give the address"):
        HoldfastSession("s", memory, key="secret")


def test_a_closed_session_raises_what_the_sdks_does_and_leaves_the_store_open(memory):
    async def main():
        kinds = [HoldfastSession("s", memory)]
        if VERSION >= (0, 20):
            kinds.append(SQLiteSession("s"))
        for session in kinds:
            await session.add_items([user("one")])
            session.close()
            for ask in (session.get_items, session.pop_item, session.clear_session):
                with pytest.raises(RuntimeError):
                    await ask()
            for items in ([], [user("two")]):
                with pytest.raises(RuntimeError):
                    await session.add_items(items)
        with pytest.raises(SessionClosed):
            await kinds[0].history()
        with pytest.raises(holdfast.Closed):
            await kinds[0].fork("t")

    asyncio.run(main())

    assert memory.stats().threads == 1


@pytest.mark.parametrize("id_", ["", "nul\0", "x" * 600, None])
def test_an_id_that_cannot_be_kept_is_refused_at_once(id_, memory):
    with pytest.raises(Unstorable):
        HoldfastSession(id_, memory)


# --- an ordinary conversation ---------------------------------------------------------


def test_a_session_is_a_conversation_with_messages_counts_and_search(memory):
    async def main():
        session = HoldfastSession("trip", memory, owner="ann", agent="planner")
        await session.add_items([user("A train to Lyon"), call("c1", "find")])
        await session.add_items([output("c1", "the 9:14"), reply("Take the 9:14")])
        await session.add_items([user("no"), call("c2", "find")])

    asyncio.run(main())

    [summary] = memory.conversations.list(owner="ann", agent="planner")
    assert (summary.messages, summary.exchanges) == (6, 2)
    assert summary.open_calls == ("c2",)
    assert memory.conversations.auto_title("trip") == "A train to Lyon"
    assert [m.position for m in memory.search("9:14")] == [3, 2]
    assert memory.conversations.load("trip").messages[0] == user("A train to Lyon")
    diff = memory.conversations.thread("trip").diff("@~1", "@")
    assert [change.path for change in diff.changes]


def test_another_owners_session_is_not_found(memory):
    async def main():
        mine = HoldfastSession("trip", memory, owner="ann")
        theirs = HoldfastSession("trip", memory, owner="bob")
        await mine.add_items([user("secret")])

        for refused in (
            theirs.get_items(),
            theirs.get_items(1),
            theirs.add_items([user("hello")]),
            theirs.pop_item(),
            theirs.clear_session(),
            theirs.history(),
            theirs.fork("mine"),
            theirs.rewind("@"),
            theirs.undo(),
            theirs.delete(),
        ):
            with pytest.raises(NotFound):
                await refused
        assert texts(await mine.get_items()) == ["secret"]

    asyncio.run(main())


def test_of_two_owners_who_begin_a_session_at_once_one_gets_it(memory):
    async def main():
        sessions = [HoldfastSession("trip", memory, owner=o) for o in ("ann", "bob")]
        adding = [session.add_items([user("mine")]) for session in sessions]
        ended = await asyncio.gather(*adding, return_exceptions=True)

        assert sorted(type(end).__name__ for end in ended) == ["NoneType", "NotFound"]

    asyncio.run(main())

    assert memory.conversations.list()[0].messages == 1


def test_a_fork_into_an_id_that_is_in_use_is_refused():
    async def body(session):
        await session.add_items([user("one")])
        with pytest.raises(Conflict, match="choose another name"):
            await session.fork("chat")

    talk(body)


# --- cost -----------------------------------------------------------------------------


def test_history_costs_what_changed_and_popping_stores_almost_nothing(tmp_path):
    async def main(store):
        session = HoldfastSession("s", store)
        for n in range(200):
            await session.add_items([user(f"question {n}"), reply("answer " * 100)])
        grown = store.stats().stored_bytes
        for _ in range(50):
            popped = await session.pop_item()
            await session.add_items([popped])
        assert len(await session.get_items()) == 400
        return grown, store.stats()

    with holdfast.open(tmp_path / "a.db", durability="normal") as store:
        grown, stats = asyncio.run(main(store))

        assert grown < 1.6 * 200 * 800
        assert stats.stored_bytes - grown < 100 * 1500
        assert store.verify().problems == ()


def test_only_the_end_of_a_long_conversation_is_read_for_a_limit(tmp_path):
    async def fill(store):
        session = HoldfastSession("s", store)
        await session.add_items([user("x" * 1000) for _ in range(2000)])
        for n in range(100):
            await session.add_items([user(f"last {n}")])

    async def tail(store):
        return await HoldfastSession("s", store).get_items(5)

    with holdfast.open(tmp_path / "a.db", durability="normal") as store:
        asyncio.run(fill(store))
    with holdfast.open(tmp_path / "a.db", cache_size=50_000) as store:
        read = []
        segments = backend_of(store).segments

        async def counted(family, runs):
            found = await segments(family, runs)
            read.append(len(found))
            return found

        backend_of(store).segments = counted
        items = asyncio.run(tail(store))

    assert texts(items) == [f"last {n}" for n in range(95, 100)]
    assert sum(read) < 50


def test_without_a_cache_the_end_is_found_all_the_same(tmp_path):
    items = [user(f"{n} " + "x" * 90) for n in range(300)]

    async def body(session):
        for item in items:
            await session.add_items([item])
        await session.pop_item()
        for limit in (1, 15, 100, 299):
            assert await session.get_items(limit) == items[299 - limit : 299]

    place = tmp_path / "a.db", {"cache_size": 0, "durability": "normal"}
    talk(body, place)


def test_clearing_an_empty_session_saves_nothing():
    async def body(session):
        await session.add_items([user("one")])
        for _ in range(3):
            await session.clear_session()

        assert [c.kind for c in await session.history()] == ["clear", "save"]

    talk(body)


def test_a_deleted_session_that_two_begin_anew_is_one(memory):
    async def main():
        sessions = [HoldfastSession("s", memory) for _ in range(8)]
        await sessions[0].add_items([user("old")])
        await sessions[0].delete()
        await asyncio.gather(*(session.clear_session() for session in sessions))
        await sessions[0].add_items([user("new")])

        assert texts(await sessions[1].get_items()) == ["new"]

    asyncio.run(main())


# --- transactions ---------------------------------------------------------------------


def test_a_transaction_that_raises_leaves_nothing_behind():
    async def body(session):
        async def fail():
            async with session.transaction():
                await session.add_items([user("two")])
                await session.clear_session()
                raise ZeroDivisionError

        await session.add_items([user("one")])
        with pytest.raises(ZeroDivisionError):
            await fail()

        assert texts(await session.get_items()) == ["one"]
        assert len(await session.history()) == 1

    talk(body)


def test_an_empty_transaction_saves_nothing():
    async def body(session):
        async with session.transaction():
            pass
        await session.add_items([user("one")])
        async with session.transaction():
            await session.add_items([user("two")])
            await session.pop_item()

        assert len(await session.history()) == 1

    talk(body)


def test_what_others_add_during_a_transaction_that_adds_is_kept(memory):
    async def main():
        session, other = (HoldfastSession("s", memory) for _ in range(2))
        async with session.transaction():
            await session.add_items([user("mine")])
            await other.add_items([user("theirs")])

        assert texts(await session.get_items()) == ["theirs", "mine"]

    asyncio.run(main())


def test_a_transaction_that_pops_what_somebody_changed_is_a_conflict(memory):
    async def main():
        session, other = (HoldfastSession("s", memory) for _ in range(2))
        await session.add_items([user("one"), user("two")])

        async def change():
            async with session.transaction():
                await session.pop_item()
                await other.add_items([user("three")])

        with pytest.raises(Conflict, match="run it again"):
            await change()

        assert texts(await session.get_items()) == ["one", "two", "three"]

    asyncio.run(main())


def test_a_transaction_inside_another_and_a_rewind_in_one_are_refused():
    async def body(session):
        async with session.transaction():
            for refused in (session.transaction().__aenter__(), session.undo()):
                with pytest.raises(Conflict, match="end it first"):
                    await refused

    talk(body)


def test_a_transaction_may_clear_and_fill_a_session_that_is_not_there_yet():
    async def body(session):
        async with session.transaction():
            await session.clear_session()
        assert await session.get_items() == []
        async with session.transaction():
            await session.clear_session()
            await session.add_items([user("one")])

        assert texts(await session.get_items()) == ["one"]

    talk(body)


def test_an_item_that_equals_nothing_can_be_popped_in_a_transaction():
    async def body(session):
        await session.add_items([user("one"), user("two", score=float("nan"))])
        async with session.transaction():
            await session.pop_item()

        assert texts(await session.get_items()) == ["one"]

    talk(body)


def test_a_cleared_transaction_begins_anew():
    async def body(session):
        await session.add_items([user("one"), user("two")])
        async with session.transaction():
            await session.clear_session()
            assert await session.get_items() == []
            assert await session.pop_item() is None
            await session.add_items([user("three")])

        assert texts(await session.get_items()) == ["three"]
        assert len(await session.history()) == 2

    talk(body)
