"""The names of threads and streams; no two ids have the same."""

from __future__ import annotations

from urllib.parse import quote

KIND = "task"
PUSH_KIND = "push"


def quoted(text: str) -> str:
    """Any text without slashes, such as is part of a name."""
    return quote(text, safe=" :@")


def tasks_of(owner: str) -> str:
    """What the names of an owner's tasks begin with."""
    return f"a2a:{quoted(owner)}/"


def task_thread(owner: str, task_id: str) -> str:
    """The thread of a task."""
    return tasks_of(owner) + quoted(task_id)


def event_stream(task_id: str) -> str:
    """The stream of a task's events; subscribers do not know its owner."""
    return f"a2a:{quoted(task_id)}"


def push_thread(task_id: str) -> str:
    """The thread of a task's push notification configs."""
    return f"a2a-push:{quoted(task_id)}"
