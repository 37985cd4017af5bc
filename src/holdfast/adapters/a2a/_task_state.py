"""Tasks and events as plain values, and back.

The messages of a task stand in one list, so that the views of a store show them: its
history, its artifacts, and the message of its status.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, TypeVar

from a2a.server.events.event_queue import Event
from a2a.types.a2a_pb2 import Message as ChatMessage
from a2a.types.a2a_pb2 import StreamResponse, Task, TaskState
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

State = dict[str, Any]
M = TypeVar("M", bound=Message)


def plain(message: Message) -> State:
    """A message of the SDK as JSON values, with the names of the protocol."""
    return MessageToDict(message)


def parsed(stored: State, message: M) -> M:
    """The message of the SDK that was stored."""
    return ParseDict(stored, message)


def state_of(task: Task, version: int) -> State:
    """The state of a task's thread."""
    stored = plain(task)
    history, artifacts = stored.pop("history", []), stored.pop("artifacts", [])
    status = stored.get("status", {})
    said = [status.pop("message")] if "message" in status else []
    return {
        "version": version,
        "sort": list(sort_key(task)),
        "counts": [len(history), len(artifacts)],
        "task": stored,
        "messages": [*history, *artifacts, *said],
    }


def task_of(state: State) -> Task:
    """The task of a state."""
    stored, messages = dict(state["task"]), state["messages"]
    history, artifacts = state["counts"]
    if history:
        stored["history"] = messages[:history]
    if artifacts:
        stored["artifacts"] = messages[history : history + artifacts]
    if len(messages) > history + artifacts:
        stored["status"] = {**stored["status"], "message": messages[-1]}
    return parsed(stored, Task())


def step_of(task: Task) -> str:
    """The kind of a task's checkpoint in a log, such as ``input_required``."""
    try:
        name = TaskState.Name(task.status.state)
    except ValueError:  # of a later version of the protocol
        return "save"
    return name.removeprefix("TASK_STATE_").lower()


def sort_key(task: Task) -> tuple[bool, int, str]:
    """The key that tasks are sorted by, greatest first: time of the status, and id."""
    has_time = task.HasField("status") and task.status.HasField("timestamp")
    return has_time, task.status.timestamp.ToNanoseconds() if has_time else 0, task.id


def stored_event(event: Event, version: int | str | None) -> State:
    """An event of a task, with the version of the task that it made."""
    return {"version": version, "event": plain(to_stream_response(event))}


def event_of(stored: State) -> Event:
    """The event that was stored."""
    response = parsed(stored["event"], StreamResponse())
    event: Event = getattr(response, str(response.WhichOneof("payload")))
    return event


def event_key(event: Event, version: int | str | None) -> str | None:
    """The key of an event; an event saved with its task is published under the same."""
    if version is None:
        return None
    if not isinstance(event, ChatMessage):
        return str(version)
    # A message does not change the task, so it has the version of the event before it.
    return f"{version}:{sha256(event.message_id.encode()).hexdigest()}"
