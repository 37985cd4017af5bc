"""Real servers and clients of the SDK over a store: replicas, kills, views."""

import asyncio
import json
import signal
import subprocess
import sys

import pytest
from a2a.types.a2a_pb2 import (
    GetTaskRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)

import holdfast
from adapters.a2a.serving import Counting, client, request, served, told
from holdfast.adapters.a2a import HoldfastPushNotificationConfigStore
from holdfast.cli import main
from support.programs import ENVIRONMENT

WORKING = TaskState.TASK_STATE_WORKING
INPUT, DONE = TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_COMPLETED
PROGRAM = """
import asyncio, json, sys
import holdfast
from adapters.a2a.serving import Counting, handler, request
from a2a.server.context import ServerCallContext

async def body():
    agent = Counting()
    with holdfast.open(sys.argv[1], **json.loads(sys.argv[2])) as store:
        handling = handler(store, agent)
        context = ServerCallContext()
        task = await handling.on_message_send(request("count"), context)
        agent.gate.clear()
        async for _ in handling.on_message_send_stream(request("yes", task), context):
            saved = await handling.task_store.get(task.id, context)
            if len(saved.task.artifacts) == 2:
                print(task.id, flush=True)
                await asyncio.Event().wait()

asyncio.run(body())
"""


async def stored(calls, task):
    return await calls.get_task(GetTaskRequest(id=task.id))


async def counted(address):
    """The task of a count that has reached its question."""
    async with await client(address) as calls:
        found = [one async for one in calls.send_message(request("count"))]
        assert told(found[-1]) == f"status_update: {INPUT}"
        return await stored(calls, found[0].task)


def test_a_second_replica_sees_what_the_first_one_does(tmp_path):
    path = str(tmp_path / "agents.db")
    agents = Counting(), Counting()

    async def follow(address, task, begun):
        async with await client(address) as calls:
            found = []
            subscribed = SubscribeToTaskRequest(id=task.id)
            async for one in calls.subscribe(subscribed):
                found.append(told(one))
                begun.set()
            return found

    async def go_on(address, task):
        async with await client(address) as calls:
            return [told(one) async for one in calls.send_message(request("yes", task))]

    async def body(first, second):
        task = await counted(first)
        agents[0].gate.clear()
        begun = asyncio.Event()
        going = asyncio.create_task(go_on(first, task))
        async with await client(second) as calls:
            while (
                await calls.get_task(GetTaskRequest(id=task.id))
            ).status.state == INPUT:
                await asyncio.sleep(0.01)
        following = asyncio.create_task(follow(second, task, begun))
        await asyncio.wait_for(begun.wait(), 120)
        agents[0].gate.set()
        return await asyncio.wait_for(asyncio.gather(going, following), 120)

    with (
        holdfast.open(path) as store,
        holdfast.open(path) as other,
        served(store, agents[0]) as first,
        served(other, agents[1]) as second,
    ):
        here, there = asyncio.run(body(first, second))

    rest = ["number 3", "number 4", f"status_update: {DONE}"]
    assert here[-3:] == rest
    assert there[0] == f"task: {WORKING}"
    assert [one for one in there[1:] if one != "number 2"] == rest


@pytest.fixture
def killed(place):
    """A store whose server was killed while an agent counted, and its task."""
    address, options = place
    if address == ":memory:":
        pytest.skip("nothing is left of it")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, address, json.dumps(options)],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        task_id = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    return address, options, task_id


def test_a_new_process_goes_on_after_a_kill(killed):
    address, options, task_id = killed

    async def body(url):
        async with await client(url) as calls:
            before = await calls.get_task(GetTaskRequest(id=task_id))
            answers = calls.send_message(request("go on", before))
            found = [told(one) async for one in answers]
            return before, found, await calls.get_task(GetTaskRequest(id=task_id))

    with (
        holdfast.open(address, **options) as store,
        served(store, Counting()) as url,
    ):
        before, found, after = asyncio.run(body(url))
        assert store.verify().ok

    assert before.status.state == WORKING
    assert [artifact.name for artifact in before.artifacts] == ["number 1", "number 2"]
    assert found[-1] == f"status_update: {DONE}"
    assert [one.name for one in after.artifacts] == [f"number {n}" for n in range(1, 5)]
    assert [message.parts[0].text for message in after.history][:2] == [
        "count",
        "counting",
    ]


def test_the_command_line_shows_a_task_as_messages(tmp_path, capsys):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store, served(store, Counting()) as address:
        task = asyncio.run(counted(address))
    thread = f"a2a:/{task.id}"

    def run(*arguments):
        assert main([*arguments, "--store", path]) == 0
        return capsys.readouterr().out

    lines = run("show", thread, "--messages").splitlines()
    assert [line.split(maxsplit=2)[1:] for line in lines] == [
        ["user", "count"],
        ["assistant", "counting"],
        ["assistant", "number 1"],
        ["assistant", "shall I go on?"],
    ]
    [newest, *_] = run("log", thread).splitlines()
    assert "input_required" in newest
    assert "shall I go on?" in newest
    assert thread in run("search", "number")


def test_a_task_that_was_rewound_goes_on_from_there(tmp_path):
    path = str(tmp_path / "agents.db")

    async def body(address, store):
        task = await counted(address)
        async with await client(address) as calls:
            thread = store.thread(f"a2a:/{task.id}")
            _ = [one async for one in calls.send_message(request("yes", task))]
            thread.rewind(asked(thread))
            rewound = await stored(calls, task)
            config = TaskPushNotificationConfig(task_id=task.id, url="https://x.org")
            await calls.create_task_push_notification_config(config)
            answers = calls.send_message(request("again", rewound))
            return rewound, [told(one) async for one in answers]

    with holdfast.open(path) as store, served(store, Counting()) as address:
        rewound, again = asyncio.run(body(address, store))
        configs = HoldfastPushNotificationConfigStore(store)
        [config] = asyncio.run(configs.get_info_for_dispatch(rewound.id))

    assert rewound.status.state == INPUT
    assert again[-1] == f"status_update: {DONE}"
    assert config.url == "https://x.org"


def asked(thread):
    """The checkpoint at which the agent asked whether to go on."""
    for checkpoint in thread.history():
        status = thread.load(checkpoint)["task"]["status"]
        if status["state"] == "TASK_STATE_INPUT_REQUIRED":
            return checkpoint
    raise AssertionError("it never asked")
