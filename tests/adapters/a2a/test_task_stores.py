"""Tasks, versions and push configs do what those of the SDK do, on every backend."""

import asyncio
from contextlib import AsyncExitStack, aclosing

import pytest
from a2a.auth.user import User
from a2a.helpers import (
    new_data_part,
    new_raw_part,
    new_text_part,
    new_url_part,
)
from a2a.server.cluster import (
    ConcurrentTaskModificationError,
    TaskVersion,
    VersionedEvent,
)
from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    Artifact,
    ListTasksRequest,
    Message,
    Role,
    Task,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import InvalidParamsError

import holdfast
from holdfast.adapters.a2a import (
    HoldfastPushNotificationConfigStore,
    HoldfastTaskEventStream,
    HoldfastTaskStore,
    HoldfastVersionedTaskStore,
)

WORKING, DONE = TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED
CANCELED = TaskState.TASK_STATE_CANCELED


class Caller(User):
    def __init__(self, name):
        self.name = name

    @property
    def is_authenticated(self):
        return bool(self.name)

    @property
    def user_name(self):
        return self.name


def by(name=""):
    return ServerCallContext(user=Caller(name))


ANN, BOB = by("ann"), by("b/o b")


def rich(id_="t/1", seconds=5, state=WORKING, context="c"):
    """A task with something of everything."""
    parts = [
        new_text_part(""),
        new_raw_part(b"\x00\xff", "image/png"),
        new_url_part("https://example.org"),
        new_data_part({"n": [1, None, {"deep": "ü"}]}),
    ]
    said = Message(message_id="m", role=Role.ROLE_AGENT, parts=parts)
    task = Task(
        id=id_,
        context_id=context,
        history=[said, Message(message_id="n", role=Role.ROLE_USER)],
        artifacts=[Artifact(artifact_id="a", parts=parts), Artifact(artifact_id="b")],
        status=TaskStatus(state=state, message=said),
    )
    task.metadata.update({"of": {"the": "task"}})
    if seconds is not None:
        task.status.timestamp.FromNanoseconds(seconds * 1_000_000_007)
    return task


PLAIN = Task(id="plain")


def test_a_task_comes_back_equal_and_only_for_its_owner(place):
    address, options = place

    async def body():
        with holdfast.open(address, **options) as store:
            tasks = HoldfastTaskStore(store)
            given = rich()
            await tasks.save(given, ANN)
            await tasks.save(rich(seconds=7), BOB)
            await tasks.save(PLAIN, by())
            given.history.add(message_id="later")

            assert await tasks.get("t/1", ANN) == rich()
            assert await tasks.get("t/1", BOB) == rich(seconds=7)
            assert await tasks.get("plain", by()) == PLAIN
            assert await tasks.get("plain", ANN) is None
            await tasks.save(given, ANN)
            assert await tasks.get("t/1", ANN) == given

            await tasks.delete("t/1", ANN)
            await tasks.delete("t/1", ANN)
            assert await tasks.get("t/1", ANN) is None
            assert await tasks.get("t/1", BOB) is not None
            await tasks.save(given, ANN)
            assert await tasks.get("t/1", ANN) == given

    asyncio.run(body())


REQUESTS = [
    ListTasksRequest(),
    ListTasksRequest(context_id="other"),
    ListTasksRequest(status=DONE),
    ListTasksRequest(status_timestamp_after={"seconds": 4}),
    ListTasksRequest(page_size=3),
]


def test_tasks_are_listed_as_the_store_in_memory_lists_them(place):
    address, options = place

    async def pages(tasks, request):
        found = []
        while True:
            page = await tasks.list(request, ANN)
            found.append(page)
            if not page.next_page_token:
                return found
            copy = ListTasksRequest()
            copy.CopyFrom(request)
            copy.page_token = page.next_page_token
            request = copy

    async def body():
        with holdfast.open(address, **options) as store:
            ours, theirs = HoldfastTaskStore(store), InMemoryTaskStore()
            for tasks in (ours, theirs):
                for n in range(8):
                    context = "other" if n % 3 == 0 else "c"
                    seconds = None if n == 5 else n // 2 * 2
                    state = DONE if n % 2 else WORKING
                    await tasks.save(rich(f"{n}", seconds, state, context), ANN)
                await tasks.save(rich("of bob"), BOB)

            for request in REQUESTS:
                assert await pages(ours, request) == await pages(theirs, request)
            with pytest.raises(InvalidParamsError):
                await ours.list(ListTasksRequest(page_token="no token"), ANN)

    asyncio.run(body())


async def saved(tasks, task, version, event=None):
    return await tasks.save(
        task, event=event, prev=None, prev_version=version, context=ANN
    )


def test_a_write_over_an_outdated_version_is_refused(place):
    address, options = place

    async def body():
        with holdfast.open(address, **options) as store:
            tasks, replica = (HoldfastVersionedTaskStore(store) for _ in range(2))
            assert await tasks.get("t/1", ANN) is None
            with pytest.raises(ConcurrentTaskModificationError):
                await saved(tasks, rich(), TaskVersion(1))
            first = await saved(tasks, rich(), TaskVersion.MISSING)
            with pytest.raises(ConcurrentTaskModificationError):
                await saved(replica, rich(), TaskVersion.MISSING)
            second = await saved(replica, rich(seconds=6), first)
            with pytest.raises(ConcurrentTaskModificationError):
                await saved(tasks, rich(seconds=7), first)

            found = await tasks.get("t/1", ANN)
            assert (found.task, found.version) == (rich(seconds=6), second)
            assert second.is_after(first)
            # A cancellation needs no version, as long as the task has not ended.
            third = await saved(replica, rich(state=CANCELED), first)
            assert third.is_after(second)
            with pytest.raises(ConcurrentTaskModificationError):
                await saved(tasks, rich(state=CANCELED), third)
            assert await tasks.as_task_store.get("t/1", ANN) == rich(state=CANCELED)
            listed = await tasks.list(ListTasksRequest(), ANN)
            assert [task.id for task in listed.tasks] == ["t/1"]

    asyncio.run(body())


def test_of_two_racing_replicas_no_update_is_lost(place):
    address, options = place

    async def count(tasks, times):
        for _ in range(times):
            while True:
                found = await tasks.get("n", ANN)
                number = found.task.metadata["n"] + 1
                found.task.metadata.update({"n": number})
                event = TaskStatusUpdateEvent(task_id="n", metadata={"n": number})
                try:
                    await saved(tasks, found.task, found.version, event)
                except ConcurrentTaskModificationError:
                    continue
                break

    async def body():
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(
                holdfast.open_async(address, **options)
            )
            replicas = [HoldfastVersionedTaskStore(store)]
            if address != ":memory:":
                other = HoldfastVersionedTaskStore(address, **options)
                stack.push_async_callback(other.close)
                replicas.append(other)
            await saved(
                replicas[0], Task(id="n", metadata={"n": 0}), TaskVersion.MISSING
            )
            await asyncio.gather(*(count(replicas[-n], 10) for n in range(2)))

            found = await replicas[-1].get("n", ANN)
            assert found.task.metadata["n"] == 20
            events = HoldfastTaskEventStream(store)
            async with aclosing(events.subscribe("n", after=TaskVersion(1))) as told:
                numbers = [(await anext(told)).event.metadata["n"] for _ in range(20)]
            assert numbers == list(range(1, 21))

    asyncio.run(body())


def test_subscribers_get_every_event_of_a_task_once(place):
    address, options = place

    async def told(events, after, count):
        found = []
        async with aclosing(events.subscribe("t/1", after=after)) as subscription:
            async for one in subscription:
                found.append((one.event, one.version))
                if len(found) == count:
                    break
        return found

    async def body():
        with holdfast.open(address, **options) as store:
            tasks, events = (
                HoldfastVersionedTaskStore(store),
                HoldfastTaskEventStream(store),
            )
            remote = HoldfastTaskEventStream(store)
            waiting = asyncio.create_task(told(remote, TaskVersion.MISSING, 4))
            version, expected = TaskVersion.MISSING, []
            for n in range(3):
                event = TaskStatusUpdateEvent(task_id="t/1", metadata={"n": n})
                version = await saved(tasks, rich(seconds=n), version, event)
                await events.publish("t/1", VersionedEvent(event, version))
                expected.append((event, version))
            message = Message(message_id="m", role=Role.ROLE_AGENT)
            await events.publish("t/1", VersionedEvent(message, version))
            expected.append((message, version))

            assert await waiting == expected
            assert await told(events, expected[0][1], 3) == expected[1:]
            await events.destroy("t/1")
            assert await told(events, TaskVersion.MISSING, 4) == expected

    asyncio.run(body())


def test_events_that_were_removed_are_told_and_the_task_goes_on(place):
    address, options = place

    async def body():
        with holdfast.open(address, **options) as store:
            tasks, events = (
                HoldfastVersionedTaskStore(store),
                HoldfastTaskEventStream(store),
            )
            version = TaskVersion.MISSING

            async def step(n):
                event = TaskStatusUpdateEvent(task_id="t/1", metadata={"n": n})
                return await saved(tasks, rich(seconds=n), version, event)

            version = await step(0)
            async with aclosing(events.subscribe("t/1", after=version)) as late:
                version = await step(1)
                await anext(late)
                for n in (2, 3, 4):
                    version = await step(n)
                store.stream("a2a:t%2F1").trim(last=1)
                with pytest.raises(holdfast.NotFound, match="no longer has all events"):
                    await anext(late)

            store.delete(store.stream("a2a:t%2F1").id)
            version = await step(5)
            async with aclosing(
                events.subscribe("t/1", after=TaskVersion.MISSING)
            ) as new:
                assert (await anext(new)).version == version

    asyncio.run(body())


def test_the_events_of_a_task_go_with_it(place):
    address, options = place

    async def body():
        with holdfast.open(address, **options) as store:
            tasks = HoldfastVersionedTaskStore(store)
            events = HoldfastTaskEventStream(store)
            event = TaskStatusUpdateEvent(task_id="t/1")
            version = await saved(tasks, rich(), TaskVersion.MISSING, event)
            subscription = events.subscribe("t/1", after=TaskVersion.MISSING)
            async with aclosing(subscription) as told:
                assert (await anext(told)).version == version
                await tasks.delete("t/1", ANN)
                with pytest.raises(StopAsyncIteration):
                    await asyncio.wait_for(anext(told), 120)

            await events.publish("t/1", VersionedEvent(event, version))
            assert store.thread("stream:a2a:t%2F1").about is None
            version = await saved(tasks, rich(), TaskVersion.MISSING, event)
            subscription = events.subscribe("t/1", after=TaskVersion.MISSING)
            async with aclosing(subscription) as told:
                assert (await anext(told)).version == version

    asyncio.run(body())


def test_push_configs_are_those_of_the_store_in_memory(place):
    address, options = place

    async def steps(configs):
        one = TaskPushNotificationConfig(url="https://example.org/1", token="secret")
        two = TaskPushNotificationConfig(id="two/", url="https://example.org/2")
        yield await configs.get_info("t", ANN)
        for config, owner in ((one, ANN), (two, ANN), (one, BOB)):
            await configs.set_info("t", config, owner)
        yield await configs.get_info("t", ANN)
        yield await configs.get_info("t", BOB)
        yield await configs.get_info_for_dispatch("t")
        two.url = "https://example.org/3"
        await configs.set_info("t", two, ANN)
        yield await configs.delete_info("t", ANN, "nothing")
        yield await configs.delete_info("t", ANN, "t")
        yield await configs.get_info("t", ANN)
        yield await configs.delete_info("t", ANN)
        yield await configs.delete_info("other", ANN)
        yield await configs.get_info_for_dispatch("t")

    async def body():
        with holdfast.open(address, **options) as store:
            ours = HoldfastPushNotificationConfigStore(store)
            theirs = InMemoryPushNotificationConfigStore()
            found = [fields(step) async for step in steps(ours)]
            assert found == [fields(step) async for step in steps(theirs)]
            store.thread("a2a-push:t").delete()
            config = TaskPushNotificationConfig(id="again", task_id="t")
            assert await ours.set_info("t", config, ANN) == config
            assert await ours.get_info("t", ANN) == [config]

    asyncio.run(body())


def fields(configs):
    """What all versions of the SDK keep of configs as they were given."""
    return [(config.id, config.url, config.token) for config in configs or ()]
