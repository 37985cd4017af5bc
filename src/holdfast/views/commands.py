"""The commands that show or do the same as a button of the viewer."""

from __future__ import annotations

import shlex

from holdfast._values.records import Checkpoint

PROGRAM = "holdfast"


def command(*words: str) -> str:
    """A line to be typed into a shell."""
    return shlex.join([PROGRAM, *words])


def checkpoint_commands(checkpoint: Checkpoint) -> dict[str, str]:
    """The commands that work on a checkpoint, by their names."""
    id_, thread = checkpoint.id, checkpoint.thread
    return {
        "show": command("show", id_),
        "messages": command("show", id_, "--messages"),
        "diff": command("diff", checkpoint.parent or id_, id_),
        "log": command("log", id_),
        "fork": command("fork", id_, f"{thread}-fork"),
        "rewind": command("rewind", in_thread(thread, id_)),
        "label": command("label", in_thread(thread, id_), "LABEL"),
        "export": command("export", "--html", "thread.html", thread),
        "tag": command("tag", in_thread(thread, id_), "TAG"),
    }


def in_thread(thread: str, reference: str) -> str:
    """A checkpoint as the command line names it within a thread."""
    return f"{thread}@{reference}"
