"""Chapter 7: a shell command breaks a file, and one restore brings all back."""

from __future__ import annotations

import os
from pathlib import Path

import holdfast
from demo.screen import Session
from demo.stage import Stage

BREAKING = "sed -i.bak s/149.00/14900/ project/prices.csv"


def restore(stage: Stage, store: holdfast.Store) -> None:
    screen = stage.screen
    folder = Path(stage.folder, "project")
    folder.mkdir()
    prices = folder / "prices.csv"
    prices.write_text("kettle,149.00\ntoaster,89.00\n")
    screen.heading(7, "Files belong to the state, and go back with it")
    thread = store.thread("prices")
    session = Session(screen, holdfast=holdfast, thread=thread, os=os)
    session.run("project = holdfast.Workspace('project')")
    session.run("thread.save({'turn': 1}, files=project).step")
    session.run(f"os.system({BREAKING!r})")
    broken = prices.read_text()
    session.run("thread.save({'turn': 2}, files=project).step")
    session.run("project.restore(thread, '@~1', state=True).written")
    turn = session.run("thread.load()['turn']")
    screen.gap()
    screen.claim(
        "the price and the state are those of turn 1, and the .bak file is gone",
        holds=turn == 1
        and "149.00" in prices.read_text()
        and not (folder / "prices.csv.bak").exists(),
    )
    session.run("len(project.undo(thread).written)")
    turn = session.run("thread.load()['turn']")
    screen.gap()
    screen.claim(
        "undo brings file and state forward again",
        holds=turn == 2 and prices.read_text() == broken,
    )
    screen.pause(1.5)
