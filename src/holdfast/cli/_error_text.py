"""The library's errors in the words of the command line."""

from __future__ import annotations

# Calls in the library's advice, and the command to type instead.
_CALLS = {
    "history()": "holdfast log --all",
    "threads()": "holdfast threads",
    "moves()": "holdfast reflog",
    "verify()": "holdfast verify",
    "holdfast.salvage(path, to)": "holdfast salvage FILE",
    "salvage()": "holdfast salvage FILE",
    "open it with accept_loss=True": "run holdfast verify --accept-loss",
    "backup()": "holdfast backup FILE",
    "compact()": "holdfast compact",
    "busy_timeout": "--wait",
    "make the folder, or open with make_folders=True": "make the folder first",
    "open it for writing first": "check --store and HOLDFAST_STORE",
}


def for_command_line(message: str) -> str:
    """A message that names commands instead of calls of the library."""
    for call, typed in _CALLS.items():
        message = message.replace(call, typed)
    return message


def hint_of(message: str) -> str | None:
    """The part of a message that says what to do next."""
    return message.partition("; ")[2] or None
