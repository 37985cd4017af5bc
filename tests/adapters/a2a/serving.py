"""A scripted agent, a server for it, and a client: all of the real SDK, on loopback."""

import contextlib
import socket
import threading
import time

import uvicorn
from a2a.client import ClientConfig, create_client
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Role,
    SendMessageRequest,
)
from starlette.applications import Starlette

from holdfast.adapters.a2a import (
    HoldfastPushNotificationConfigStore,
    HoldfastTaskEventStream,
    HoldfastVersionedTaskStore,
)

DEADLINE = 120


def card(port):
    url = f"http://127.0.0.1:{port}/"
    return AgentCard(
        name="counting",
        description="Counts.",
        version="1",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text"],
        default_output_modes=["text"],
        skills=[
            AgentSkill(id="count", name="count", description="Counts.", tags=["c"])
        ],
    )


class Counting(AgentExecutor):
    """Counts in artifacts; asks whether to go on after the first number.

    ``gate`` holds the count after each of its numbers but the first.
    """

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()

    async def execute(self, context, event_queue):
        from anyio import to_thread

        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work(said(updater, "counting"))
        if not task.artifacts:
            await number(updater, 1)
            await updater.requires_input(said(updater, "shall I go on?"))
            return
        for n in range(2, 5):
            await number(updater, n)
            await to_thread.run_sync(self.gate.wait, DEADLINE)
        await updater.complete(said(updater, "counted"))

    async def cancel(self, context, event_queue):
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.cancel()


def said(updater, text):
    return updater.new_agent_message([new_text_part(text)])


async def number(updater, n):
    part = new_text_part(f"number {n}")
    await updater.add_artifact([part], artifact_id=str(n), name=f"number {n}")


def handler(store, agent, port=0):
    return DefaultRequestHandler(
        agent_executor=agent,
        task_store=HoldfastVersionedTaskStore(store),
        agent_card=card(port),
        push_config_store=HoldfastPushNotificationConfigStore(store),
        event_stream=HoldfastTaskEventStream(store),
    )


@contextlib.contextmanager
def served(store, agent):
    """The address of a server that runs in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    app = Starlette(
        routes=[
            *create_agent_card_routes(card(port)),
            *create_jsonrpc_routes(handler(store, agent, port), "/"),
        ]
    )
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, args=[[listener]])
    thread.start()
    deadline = time.monotonic() + DEADLINE
    while not running.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        agent.gate.set()
        running.should_exit = True
        thread.join()
        listener.close()


def request(text, task=None):
    """A message of the user, to a new task or to one."""
    about = {"task_id": task.id, "context_id": task.context_id} if task else {}
    message = Message(
        message_id=f"said {text}",
        role=Role.ROLE_USER,
        parts=[new_text_part(text)],
        **about,
    )
    return SendMessageRequest(message=message)


async def client(address):
    return await create_client(address, ClientConfig(streaming=True))


def told(response):
    """What a client is told, in short."""
    which = response.WhichOneof("payload")
    found = getattr(response, which)
    if which == "artifact_update":
        return found.artifact.name
    if which in {"status_update", "task"}:
        return f"{which}: {found.status.state}"
    return which
