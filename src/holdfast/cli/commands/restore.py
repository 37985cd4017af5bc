"""`holdfast restore`: put an agent, or files and state of a thread, back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TypedDict, Unpack

import click

from holdfast._api.store import Store
from holdfast._engine.records.agent_checkpoints import described, thread_of
from holdfast._engine.records.restore import recovery_name
from holdfast._values.records import Checkpoint, Page
from holdfast.agents import AgentCheckpoint, Restored, RestorePreview
from holdfast.cli import _command, _status
from holdfast.cli._completion import AGENT, AGENT_CHECKPOINT
from holdfast.cli._confirmation import status_of_preview
from holdfast.cli._effects import behind_lines
from holdfast.cli._file_restore import FileRestore, restore_thread
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import dry_run_option, flag, option, yes_option
from holdfast.cli._resolve import check_agent, checkpoint_of_agent
from holdfast.cli._text import counted, time
from holdfast.cli._thread_names import find_thread
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Cell, Line
from holdfast.views.references import shown_reference
from holdfast.views.restore import agent_checkpoint_document, restore_document

# How many checkpoints are listed, and how many conversations a summary names.
MOST_LISTED = 20
MOST_NAMED = 5
SCHEMA = "restore/1"


@_command.command("restore")
@click.argument("agent", type=AGENT)
@click.argument("checkpoint", type=AGENT_CHECKPOINT, required=False)
@flag("--files", help="Restore only the files of a thread.")
@flag("--state", help="Restore only the state of a thread.")
@option("--path", "PATH", "Restore only this file or folder.", multiple=True)
@option("--into", "FOLDER", "Write the files into another folder.")
@option("--workspace", "FOLDER", "Where the files are; by default, here or above.")
@flag("--force", help="Restore also files that were changed since they were saved.")
@flag("--all", "whole", help="Show every conversation and effect, not only a summary.")
@dry_run_option
@yes_option
def command(
    cli: Invocation,
    *,
    agent: str,
    checkpoint: str | None,
    whole: bool,
    dry_run: bool,
    yes: bool,
    **choice: Unpack[_Choice],
) -> int:
    """Put an agent, or a thread with files, back to a checkpoint.

    CHECKPOINT is a name, an id or the beginning of one, or a step such as @3. Without
    it, the checkpoints of AGENT are listed, newest first.

    Conversations that were created later are removed, deleted ones come back. The
    present is kept as a recovery checkpoint: restoring that one takes it all back. Tool
    calls that were made since cannot be taken back. Shows what would change and asks
    first.

    If AGENT is a thread that was saved with files, its files and its state go back to
    CHECKPOINT, a reference such as @~3. Only files that a snapshot has are touched.

    For example: holdfast restore planner before-booking
    """
    wanted = _wanted(choice)
    if wanted or _is_thread(cli, agent):
        return restore_thread(cli, agent, checkpoint, wanted, dry_run=dry_run, yes=yes)
    if checkpoint is not None:
        return _restore(cli, agent, checkpoint, whole=whole, dry_run=dry_run, yes=yes)
    with cli.reading() as store:
        check_agent(store, agent)
        _list(cli, store, agent)
    return _status.OK


class _Choice(TypedDict):
    files: bool
    state: bool
    path: tuple[str, ...]
    into: str | None
    workspace: str | None
    force: bool


def _wanted(choice: _Choice) -> FileRestore:
    return FileRestore(
        files=choice["files"],
        state=choice["state"],
        paths=choice["path"],
        into=choice["into"],
        workspace=choice["workspace"],
        force=choice["force"],
    )


def _restore(
    cli: Invocation, agent: str, ref: str, *, whole: bool, dry_run: bool, yes: bool
) -> int:
    opened = cli.reading if dry_run else cli.writing
    with opened() as store:
        check_agent(store, agent)
        target = checkpoint_of_agent(store, agent, ref)
        typed = _typed(store, target)
        if dry_run or not yes:
            preview = store.agents.restore(agent, target.id, dry_run=True)
            lines = _preview(cli.out, preview, typed, whole=whole)
            document = restore_document(preview)
            status = status_of_preview(cli, SCHEMA, document, lines, dry_run=dry_run)
            if status is not None:
                return status
        done = store.agents.restore(agent, target.id)
        undo = _typed(store, store.get(done.recovery.id))
    cli.out.done(
        SCHEMA,
        restore_document(done),
        (agent, "name"),
        ("  restored to ", ""),
        *_shown(done.checkpoint, typed),
        more=_report(cli.out, done, undo, whole=whole),
    )
    return _status.OK


def _is_thread(cli: Invocation, name: str) -> bool:
    """True if a name is that of a thread and not of an agent."""
    with cli.reading() as store:
        if store.agents.thread(name).about or store.agents.checkpoints(name, limit=1):
            return False
        return find_thread(store, name) is not None


def _typed(store: Store, checkpoint: Checkpoint) -> str:
    """The text to type for an agent's checkpoint: its step, or the start of its id."""
    thread = store.thread(checkpoint.thread)
    return shown_reference(store, checkpoint, thread).removeprefix(thread.id)


def _command_for(agent: str, *more: str) -> str:
    return shlex.join(["holdfast", "restore", agent, *more])


# --- listing --------------------------------------------------------------------------


def _list(cli: Invocation, store: Store, agent: str) -> None:
    """List the checkpoints of an agent, newest first."""
    thread = store.thread(thread_of(agent))
    found = thread.history(MOST_LISTED) if thread.about else Page[Checkpoint](())
    documents = [agent_checkpoint_document(described(each)) for each in found]
    document = {"agent": agent, "checkpoints": documents}
    cli.out.answer("agent_checkpoints/1", document, _listed(cli.out, agent, found))
    if not found:
        how = "store.agents.checkpoint() and the tool checkpoint_create make one"
        cli.out.note(f"{agent} has no checkpoints; {how}")


def _listed(out: Output, agent: str, found: Page[Checkpoint]) -> Iterator[Line]:
    yield from out.table(_row(out, each) for each in found)
    if found.cursor is not None:
        rest = shlex.join(["holdfast", "log", thread_of(agent)])
        yield ((f"and more: {rest}", "faint"),)
    if found:
        example = _command_for(agent, f"@{found[0].step}")
        yield ((f"to restore the first: {example}", "faint"),)


def _row(out: Output, checkpoint: Checkpoint) -> list[Cell]:
    about = described(checkpoint)
    conversations = counted(about.conversations, "conversation")
    return [
        (f"@{checkpoint.step}", "reference"),
        (out.time(about.created_at), "faint"),
        (about.kind, ""),
        (about.name if about.name != about.kind else "", "name"),
        (f"{conversations}, {counted(about.messages, 'message')}", ""),
        (about.description or "", "faint"),
    ]


# --- what changes ---------------------------------------------------------------------


def _preview(
    out: Output, preview: RestorePreview, typed: str, *, whole: bool
) -> Iterator[Line]:
    target, agent = preview.checkpoint, preview.checkpoint.agent_id
    shown = _shown(target, typed)
    yield (("would restore ", ""), (agent, "name"), (" to ", ""), *shown)
    yield from _changes(out, preview, whole=whole)
    every = None if whole else _command_for(agent, typed, "--dry-run", "--all")
    yield from behind_lines(out, preview.effects, every, of_thread=True)
    kept = f'the present is kept as "{recovery_name(target)}"'
    yield ((f"{kept}; restoring that takes this back", "faint"),)


def _report(out: Output, done: Restored, undo: str, *, whole: bool) -> Iterator[Line]:
    yield from _changes(out, done, whole=whole)
    # No command lists these together once it is done, so all are shown.
    yield from behind_lines(out, done.effects, None, of_thread=True)
    back = _command_for(done.checkpoint.agent_id, undo)
    yield ((f"to take this back: {back}", "faint"),)


def _shown(checkpoint: AgentCheckpoint, typed: str) -> Line:
    return (
        (typed, "reference"),
        (f' "{checkpoint.name}"', ""),
        (f", {time(checkpoint.created_at)}", "faint"),
    )


def _changes(out: Output, done: RestorePreview, *, whole: bool) -> Iterator[Line]:
    changed = (done.agent_changed, done.rewound, done.revived, done.removed)
    if not any(changed):
        yield (("  nothing changes", "faint"),)
    if done.agent_changed:
        yield (("  ~ the agent itself", "changed"),)
    for sign, style, what, ids in (
        ("~", "changed", "rewound", done.rewound),
        ("+", "added", "revived", done.revived),
        ("-", "removed", "removed", done.removed),
    ):
        if ids:
            count = counted(len(ids), "conversation")
            names = _names(ids, len(ids) if whole else MOST_NAMED)
            text = f"  {sign} {count} {what}: {names}"
            yield ((text, style),) if whole else out.fitted(((text, style),))
    if done.unsaved:
        text = f"  {counted(done.unsaved, 'message')} not in a checkpoint yet"
        yield ((f"{text}, passed over", "bad"),)


def _names(ids: Sequence[str], most: int) -> str:
    return ", ".join(ids[:most]) + (", ..." if len(ids) > most else "")
