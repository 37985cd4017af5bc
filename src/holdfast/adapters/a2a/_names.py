"""The names of threads and streams; different ids give different names."""

from __future__ import annotations

from urllib.parse import quote

KIND = "task"
PUSH_KIND = "push"


def quoted(text: str) -> str:
    """A text without slashes for use in a name; different texts stay different."""
    return quote(text, safe=" :@")


def tasks_of(owner: str) -> str:
    """The prefix of the names of an owner's tasks."""
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
