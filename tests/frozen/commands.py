"""Command lines that print every kind of JSON, and the stores they work on.

The lines of a store are typed one after another. Each is run with `--json`, and again
with `--ndjson` if the command knows it. "!" is before a line that prints an error.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import stores

import holdfast
from inner.api import write_key_file
from inner.messages import PAUSED_RUN
from support.telemetry import Exported

Maker = Callable[[Path], None]


def make_workspace(path: Path) -> None:
    """A thread and a fork with files, and their folder, where one was changed since."""
    folder = path.parent / "project"
    (folder / "src").mkdir(parents=True)
    workspace = holdfast.Workspace(str(folder))
    with stores.opened(path) as store:
        coder = store.thread("coder")
        (folder / "src" / "main.py").write_text("print(1)\n")
        coder.save({"turn": 1}, files=workspace)
        side = coder.fork("side")
        (folder / "src" / "main.py").write_text("print(2)\n")
        (folder / "notes.txt").write_text("two\n")
        coder.save({"turn": 2}, files=workspace)
        (folder / "src" / "main.py").write_text("print(3)\n")
        (folder / "side.txt").write_text("three\n")
        side.save({"turn": 3}, files=workspace)


def make_trials(path: Path) -> None:
    """A run that is paused, branches of which one is the best, and traces."""
    known: Any = {"clock": stores.clock(), "new_id": stores.ids()}
    exported = Exported()
    with (
        exported.trace(),
        holdfast.open(path, telemetry=exported.telemetry, **known) as store,
    ):
        run = {"sdk": "x", "id": "r1", "agent": "desk", "calls": [{"id": "c1"}]}
        store.thread("paused").save({PAUSED_RUN: run})
        task = store.thread("task")
        task.save({"plan": 0})
        task.explore(_try, n=2, name="ways", score=lambda branch: branch.number)


def _try(branch: holdfast.Branch) -> None:
    branch.thread.amend(values={"plan": branch.number})
    branch.spend(tokens=100)


def make_encrypted(path: Path) -> None:
    """An encrypted store, and the file of its key."""
    key = path.parent / "store.key"
    write_key_file(str(key), owners=False)
    with holdfast.open(path, key=key) as store:
        store.thread("secret", owner="ann").save({"n": 1})


STORIES: dict[Maker, str] = {
    stores.make_support: """
        status
        threads
        threads -n 1
        log support-4812
        log support-4812 --all -n 2 --changes
        log --graph support-4812
        show fix-policy@label:golden
        show support-4812@label:denied
        show support-4812@1 messages
        show support-4812 --state
        show fix-policy --messages
        diff support-4812@1 support-4812
        diff --stat support-4812@label:denied fix-policy
        diff --json-patch support-4812@1 support-4812
        compare support-4812 fix-policy try-credit
        blame attempts support-4812
        bisect fix-policy -- true
        bisect fix-policy -- grep -vq approved
        bisect fix-policy -- sh -c 'test $HOLDFAST_STEP -lt 5 && exit 125; exit 3'
        fork support-4812@2 planned --dry-run
        fork support-4812@2 forked --set attempts=7
        tag support-4812 good
        label support-4812 best
        merge -n try-credit fix-policy
        merge support-4812 fix-policy
        rewind support-4812@2 --dry-run
        rewind support-4812@2 --yes
        undo support-4812
        redo support-4812
        reflog support-4812
        stats
        stats --keep-last 1
        verify
        seal
        doctor
        prune --keep-last 1 --dry-run
        prune --keep-last 1 --yes
        compact
        backup copy.db --check
        export all.hfa
        export lines.jsonl --jsonl
        export page.html --html fix-policy
        import all.hfa --store new.db
        import all.hfa --store new.db
        import FIXTURES/echo_state --store new.db
        import FIXTURES/oxios --dry-run
        import FIXTURES/aethershell --dry-run
        erase --owner ann --dry-run
        erase --owner ann --yes
        key check
        completion bash
        selftest --only hung-server
        ! show nobody
        ! mcp --port 1
    """,
    stores.make_wide: """
        threads
        search late
        show conversation:letter[1]
        resolve conversation:letter c2 --error no
    """,
    stores.make_trip: """
        status
        threads
        show conversation:trip-7
        show conversation:trip-7 --messages
        show conversation:trip-7[0]
        log conversation:trip-7
        journal conversation:trip-7
        journal conversation:trip-7 --verbose
        effects conversation:trip-7
        effects conversation:try-train --since conversation:trip-7@1
        fork conversation:try-train@1 conversation:b --dry-run
        fork conversation:try-train@1 conversation:b --effects deny
        rewind conversation:try-train@1 --dry-run
        rewind conversation:try-train@1 --yes
        resolve conversation:trip-7 c4 --result '{"paid": 5}'
    """,
    stores.make_agent: """
        restore planner
        restore planner @1 --dry-run
        restore planner @1 --yes
    """,
    stores.make_travel: """
        search lyon
        search lyon --per conversation
        search lyon -n 1
    """,
    stores.make_damaged: """
        verify
        verify --repair rest.db
        salvage saved.db
    """,
    make_workspace: """
        show coder:src/main.py
        diff coder@1 coder --files
        diff coder@1 coder
        restore coder @1 --dry-run --workspace project
        merge -n coder side
        restore coder @1 --yes --force --workspace project
        restore coder @1 --state --dry-run
        rewind coder@1 --dry-run
    """,
    make_trials: """
        status
        show paused
        threads
        log task
        compare task task/ways/1 task/ways/2
    """,
    make_encrypted: """
        key init next.key
        key check
        key rekey next.key --to other.db
        key rotate next.key
    """,
}
# They print one document when they listen.
SERVERS = ("serve --no-open", "mcp --http")
