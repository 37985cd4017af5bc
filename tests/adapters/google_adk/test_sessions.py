"""Sessions are kept as the framework's own services do it, and no update is lost."""

import asyncio
import base64
from datetime import UTC, datetime

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from msgspec.structs import replace

import holdfast
from adapters.google_adk.agents import HERE, ME, event, opened, texts
from holdfast import Unstorable
from holdfast.adapters.google_adk import HoldfastSessionService, session_thread
from holdfast.backends import Layer, run
from inner.google_adk import SessionsQuery, StaleSession, list_sessions


@pytest.fixture
def everywhere(place):
    """Runs a coroutine function with a service on each backend."""

    def run(body):
        async def within():
            async with opened(place) as store:
                await body(HoldfastSessionService(store))

        asyncio.run(within())

    return run


def on_a_file(body, tmp_path):
    async def within():
        async with HoldfastSessionService(tmp_path / "agents.db") as service:
            await body(service)

    asyncio.run(within())


# --- as in the framework --------------------------------------------------------------

STATE = {"app:lang": "fr", "user:name": "Ann", "temp:x": 1, "n": 0, "none": None}


CHANGES = [
    {"n": 1, "app:lang": "de"},
    {"temp:x": 2, "deep": {"a": [1, None]}},
    {"user:name": "Anna", "app:lang": None},
    {"when": datetime(2026, 5, 1, tzinfo=UTC), "n": None},
]
CONFIGS = [(0, None), (1, None), (99, None), (None, 4.0), (3, 4.0)]


class Watch:
    """Writes down what a service shows of its sessions."""

    def __init__(self, service):
        self.service, self.shown = service, []

    async def look(self, session="s1", user="ann", config=None):
        found = await self.service.get_session(
            app_name="app", user_id=user, session_id=session, config=config
        )
        self.shown.append(found and found.model_dump(exclude={"last_update_time"}))

    async def list(self):
        for whose in ({}, {"user_id": "ann"}, {"user_id": "nobody"}):
            found = await self.service.list_sessions(app_name="app", **whose)
            shown = [(s.id, s.user_id, s.state, s.events) for s in found.sessions]
            self.shown += sorted(shown, key=lambda one: one[0])  # any order in 2.0

    async def look_at_all(self):
        for session, user in [("s1", "ann"), ("s2", "bob"), ("s1", "bob")]:
            await self.look(session, user)
        for most, since in CONFIGS:
            wanted = GetSessionConfig(num_recent_events=most, after_timestamp=since)
            await self.look(config=wanted)
        await self.list()

    async def user_states(self):
        for user in ("ann", "nobody"):
            state = await self.service.get_user_state(app_name="app", user_id=user)
            self.shown.append(state)


async def a_life(service):
    """What a service shows of some sessions, in which all kinds of things happen."""
    watch = Watch(service)
    await watch.look()
    session = await service.create_session(**HERE, state=STATE)
    watch.shown.append(session.state)
    await service.create_session(app_name="app", user_id="bob", session_id="s2")
    await service.create_session(app_name="other", user_id="ann", session_id="s1")
    await watch.look()
    partial = event("no", partial=True, state={"n": 9}, id="p", at=1.0)
    await service.append_event(session, partial)
    for number, state in enumerate(CHANGES):
        told = event(f"e{number}", id=f"e{number}", at=2.0 + number, state=state)
        returned = await service.append_event(session, told)
        watch.shown.append(returned.model_dump(mode="json"))
    watch.shown.append((session.state["temp:x"], texts(session)))
    await watch.look_at_all()
    if hasattr(InMemorySessionService, "get_user_state"):  # not before 2.2
        await watch.user_states()
    await service.delete_session(**HERE)
    await service.delete_session(**HERE)
    await watch.look_at_all()
    again = await service.create_session(**HERE)
    watch.shown.append((again.state, again.events))
    return watch.shown


def in_json(shown):
    """A date is text in every store but in memory."""
    text = "2026-05-01T00:00:00Z"
    return repr(shown).replace(repr(datetime(2026, 5, 1, tzinfo=UTC)), repr(text))


def test_everything_is_shown_as_the_framework_keeps_it_in_memory(everywhere):
    expected = asyncio.run(a_life(InMemorySessionService()))

    async def body(service):
        for one, other in zip(await a_life(service), expected, strict=True):
            assert in_json(one) == in_json(other)

    everywhere(body)


def test_events_come_back_equal_with_bytes_and_calls(everywhere):
    parts = [
        types.Part(text="look", thought=True, thought_signature=b"\xff\x00\xfe"),
        types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x89PNG\xff")),
        types.Part(function_call=types.FunctionCall(id="c", name="f", args={"x": 1})),
        types.Part(
            function_response=types.FunctionResponse(
                id="c", name="f", response={"big": 2**70, "none": None}
            )
        ),
    ]
    told = Event(
        author="agent",
        invocation_id="i",
        content=types.Content(role="model", parts=parts),
        long_running_tool_ids={"c", "d"},
        custom_metadata={"k": [1, {"z": None}]},
        actions=EventActions(artifact_delta={"a.txt": 3}, escalate=True),
    )

    async def body(service):
        session = await service.create_session(**HERE)
        await service.append_event(session, told)

        found = await service.get_session(**HERE)

        assert found == session
        assert found.events == [told]

    everywhere(body)


def test_a_session_has_an_id_of_its_own_and_no_id_is_given_twice(everywhere):
    async def body(service):
        first = await service.create_session(**ME)
        second = await service.create_session(**ME, session_id="  ")
        assert len({first.id, second.id, ""}) == 3

        await service.create_session(**ME, session_id=" s1\t")
        assert (await service.get_session(**ME, session_id="s1 ")).id == "s1"
        with pytest.raises(AlreadyExistsError, match="'s1' exists"):
            await service.create_session(**HERE, state={"user:n": 1})
        assert await service.get_user_state(**ME) == {}
        found = await service.list_sessions(**ME)
        assert len(found.sessions) == 3

    everywhere(body)


def test_events_of_the_same_time_keep_their_order(everywhere):
    order = [f"e{number}" for number in range(12)]

    async def body(service):
        session = await service.create_session(**HERE)
        for text in order:
            await service.append_event(session, event(text, at=7.0))

        for config in (None, GetSessionConfig(after_timestamp=7.0)):
            assert texts(await service.get_session(**HERE, config=config)) == order
        few = GetSessionConfig(num_recent_events=3)
        assert texts(await service.get_session(**HERE, config=few)) == order[-3:]

    everywhere(body)


def test_the_events_since_a_time_are_found_in_a_long_session(tmp_path):
    async def body(service):
        session = await service.create_session(**HERE)
        for number in range(100):
            await service.append_event(session, event(str(number), at=float(number)))

        for since in (0.0, 5.0, 90.0, 99.0, 100.0):
            config = GetSessionConfig(after_timestamp=since)
            found = await service.get_session(**HERE, config=config)
            assert texts(found) == [str(n) for n in range(int(since), 100)]

    on_a_file(body, tmp_path)


# --- workers that do not know of one another ------------------------------------------


def test_of_two_handles_the_one_that_is_late_is_told_and_nothing_is_lost(everywhere):
    async def body(service):
        await service.create_session(**HERE)
        lost = 0
        for number in range(20):
            one = await service.get_session(**HERE)
            other = await service.get_session(**HERE)
            await service.append_event(one, event(state={f"one{number}": 1}))
            with pytest.raises(StaleSession, match="get the session again"):
                await service.append_event(other, event(state={f"other{number}": 1}))
            await service.append_event(one, event("more"))
            found = await service.get_session(**HERE)
            lost += f"one{number}" not in found.state
            assert f"other{number}" not in found.state
            assert len(found.events) == 2 * number + 2
        assert lost == 0

    everywhere(body)


def test_one_session_can_be_appended_to_by_several_tasks_at_once(everywhere):
    async def body(service):
        session = await service.create_session(**HERE)
        await asyncio.gather(
            *(service.append_event(session, event(f"e{n}")) for n in range(8))
        )

        found = await service.get_session(**HERE)

        assert found == session
        assert texts(found) == [f"e{n}" for n in range(8)]

    everywhere(body)


def test_a_session_that_was_not_loaded_here_is_judged_by_its_last_event(tmp_path):
    async def body(service):
        held = await service.create_session(**HERE)
        made = Session(id="s1", app_name="app", user_id="ann")
        await service.append_event(made, event("one"))
        copy = Session.model_validate_json(made.model_dump_json())
        await service.append_event(copy, event("two"))
        for stale in (made, held, Session(id="s1", app_name="app", user_id="ann")):
            with pytest.raises(StaleSession):
                await service.append_event(stale, event("three"))

        assert texts(await service.get_session(**HERE)) == ["one", "two"]

    on_a_file(body, tmp_path)


def test_a_copy_of_a_session_knows_what_it_was_loaded_from(tmp_path):
    async def body(service):
        session = await service.create_session(**HERE)
        copy = session.model_copy(deep=True)
        await service.append_event(copy, event("one"))
        with pytest.raises(StaleSession):
            await service.append_event(session, event("two"))

    on_a_file(body, tmp_path)


def test_an_event_of_a_session_that_is_gone_is_refused(everywhere):
    async def body(service):
        session = await service.create_session(**HERE)
        await service.delete_session(**HERE)
        unknown = Session(id="never", app_name="app", user_id="ann")
        for gone in (session, unknown):
            with pytest.raises(SessionNotFoundError):
                await service.append_event(gone, event(state={"user:n": 1}))

        assert await service.get_user_state(**ME) == {}

    everywhere(body)


def test_a_refused_event_changes_no_scope(everywhere):
    async def body(service):
        session = await service.create_session(**HERE, state={"user:n": 1, "app:n": 1})
        stale = await service.get_session(**HERE)
        await service.append_event(session, event())
        with pytest.raises(StaleSession):
            await service.append_event(
                stale, event(state={"user:n": 2, "app:n": 2, "n": 2})
            )

        found = await service.get_session(**HERE)

        assert found.state == {"user:n": 1, "app:n": 1}

    everywhere(body)


def test_two_sessions_of_a_user_change_the_shared_state_at_once(everywhere):
    async def body(service):
        ids = [f"s{n}" for n in range(6)]
        sessions = [await service.create_session(**ME, session_id=id_) for id_ in ids]
        await asyncio.gather(
            *(
                service.append_event(
                    one, event(state={f"user:{one.id}": 1, "app:x": 1})
                )
                for one in sessions
            )
        )

        assert await service.get_user_state(**ME) == dict.fromkeys(ids, 1)

    everywhere(body)


def test_the_state_of_a_deleted_user_begins_anew(everywhere):
    async def body(service):
        await service.create_session(**HERE, state={"user:old": 1, "app:kept": 1})
        await service._store.delete(owner="ann")
        session = await service.create_session(**HERE, state={"user:new": 1})
        assert session.state == {"user:new": 1, "app:kept": 1}
        await service.append_event(session, event(state={"user:more": 2}))

        assert await service.get_user_state(**ME) == {"new": 1, "more": 2}

    everywhere(body)


def test_a_cancelled_append_is_made_and_the_session_knows_it(tmp_path):
    async def body(service):
        session = await service.create_session(**HERE)
        task = asyncio.create_task(service.append_event(session, event("one")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await service.append_event(session, event("two"))

        assert texts(await service.get_session(**HERE)) == ["one", "two"]

    on_a_file(body, tmp_path)


# --- names and listings ---------------------------------------------------------------

HOSTILE = ["a/b", "a%2Fb", "a%252Fb", "a", "", "ä🙂", "a b", ":", "../..", "%"]


def test_no_two_apps_users_and_sessions_get_in_each_others_way(tmp_path):
    async def body(service):
        keys = [(a, u, s) for a in HOSTILE for u in HOSTILE[:4] for s in ("a", "b/a")]
        for app, user, id_ in keys:
            await service.create_session(
                app_name=app, user_id=user, session_id=id_, state={"it": id_}
            )

        for app, user, id_ in keys:
            found = await service.get_session(
                app_name=app, user_id=user, session_id=id_
            )
            assert (found.app_name, found.user_id, found.id) == (app, user, id_)
        for app in HOSTILE:
            whole = await service.list_sessions(app_name=app)
            mine = await service.list_sessions(app_name=app, user_id="a/b")
            assert len(whole.sessions) == 8
            assert [s.id for s in mine.sessions] == ["a", "b/a"]

    on_a_file(body, tmp_path)


@pytest.mark.parametrize("name", ["x" * 600, "a\0b", "\ud800"])
def test_a_name_that_cannot_be_stored_is_refused(name, tmp_path):
    async def body(service):
        with pytest.raises(Unstorable):
            await service.create_session(app_name="app", user_id=name)

    on_a_file(body, tmp_path)


def test_sessions_are_listed_in_pages_last_used_first(everywhere):
    async def body(service):
        for number in range(5):
            state = {"n": number, "large": "x" * 400}
            await service.create_session(**ME, session_id=f"s{number}", state=state)
        page = await service.recent_sessions(**ME, limit=2)
        rest = await service.recent_sessions(**ME, limit=9, after=page.cursor)

        assert [s.id for s in page] == ["s4", "s3"]
        assert [(s.id, s.state["n"]) for s in rest] == [("s2", 2), ("s1", 1), ("s0", 0)]
        whole = (await service.list_sessions(**ME)).sessions
        assert [s.id for s in whole] == [f"s{n}" for n in range(5)]
        assert {len(s.state["large"]) for s in whole} == {400}
        # A listed session knows what it was loaded from.
        await service.append_event(whole[0], event())
        whole = (await service.list_sessions(**ME)).sessions
        assert [s.id for s in whole] == ["s1", "s2", "s3", "s4", "s0"]

    everywhere(body)


def test_a_service_takes_a_store_of_either_api_or_an_address(tmp_path):
    path = tmp_path / "agents.db"

    async def body():
        async with HoldfastSessionService(str(path)) as owner:
            await owner.create_session(**HERE)
        with holdfast.open(path) as store:
            service = HoldfastSessionService(store)
            session = await service.get_session(**HERE)
            await service.append_event(session, event("one"))
            await service.close()
            assert store.thread(session_thread("app", "ann", "s1")).step == 2
        with pytest.raises(holdfast.Closed):
            await owner.get_session(**HERE)

    asyncio.run(body())


def test_what_has_no_json_becomes_its_text_as_in_the_framework(tmp_path, caplog):
    async def body(service):
        session = await service.create_session(**HERE, state={"f": len})
        assert session.state == {"f": repr(len)}
        image = base64.b64encode(b"x").decode()
        await service.append_event(session, event(state={"s": {1}, "i": image}))
        found = await service.get_session(**HERE)
        assert found.state == {"f": repr(len), "s": [1], "i": image}

    on_a_file(body, tmp_path)


class Counting(Layer):
    """Counts the requests for reading, and the records that listings gave."""

    requests = 0
    listed = 0

    async def read(self, keys):
        self.requests += 1
        return await super().read(keys)

    async def segments(self, family, runs):
        self.requests += 1
        return await super().segments(family, runs)

    async def scan(self, query):
        self.requests += 1
        page = await super().scan(query)
        self.listed += len(page)
        return page


def counted(service, **asked):
    """A page of sessions, and what was read for it."""
    context = service._store.runner.context
    counting = Counting(context.backend)
    query = SessionsQuery(app="app", **asked)
    return run(list_sessions(replace(context, backend=counting), query)), counting


def test_a_list_takes_as_many_requests_for_many_sessions_as_for_few(tmp_path):
    requests = []

    async def body(service):
        for number in range(30):
            state = {"user:large": "x" * 500, "large": f"{number}" * 500}
            where = {"app_name": "app", "user_id": f"u{number}"}
            session = await service.create_session(**where, state=state)
            await service.append_event(session, event("y" * 500))
            if number in (2, 29):
                page, counting = counted(service)
                assert len(page) == number + 1
                requests.append(counting.requests)

    on_a_file(body, tmp_path)

    assert requests[0] == requests[1] < 8


def test_a_page_reads_nothing_of_sessions_and_users_that_are_not_on_it(tmp_path):
    async def body(service):
        for number in range(20):
            where = {"app_name": "app", "user_id": f"u{number}"}
            await service.create_session(**where, state={"user:n": number})

        page, counting = counted(service, limit=2)

        assert counting.listed == 2
        assert [session.user for session in page] == [{"state:n": 19}, {"state:n": 18}]

    on_a_file(body, tmp_path)
