"""`holdfast erase`: remove all of an owner, an agent or a thread, leaving nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from holdfast._api.store import Store
from holdfast._engine.upkeep.erasure import Erasure
from holdfast.cli import _command, _status
from holdfast.cli._completion import THREAD
from holdfast.cli._confirmation import status_of_preview
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import dry_run_option, flag, option, yes_option
from holdfast.cli._text import counted, size
from holdfast.cli._thread_names import full_name
from holdfast.cli.terminal.tables import Line

BACKUPS = {
    "readable": "backups made before still hold it",
    "unreadable": "the contents can be read in no backup made before either",
}


@_command.command("erase")
@option("--owner", "NAME", "Erase all threads of this owner.")
@option("--agent", "NAME", "Erase this agent, its conversations and checkpoints.")
@option("--thread", "THREAD", "Erase this thread.", type=THREAD)
@flag("--forks", help="Also erase threads of others that share history with it.")
@dry_run_option
@yes_option
def command(
    cli: Invocation,
    *,
    owner: str | None,
    agent: str | None,
    thread: str | None,
    forks: bool,
    dry_run: bool,
    yes: bool,
) -> int:
    """Remove all of an owner, an agent or a thread, so that nothing of it is left.

    Not in the search index, the log or unused space of the store either, and late
    writers are refused for good. Shows what would be erased and asks first; `--json`
    gives the whole receipt, without the name. Backups are not changed, but see
    `key init --owners`.
    """
    with cli.writing() as store:
        named = full_name(store, thread) if thread is not None else None
        what = {"owner": owner, "agent": agent, "thread": named, "forks": forks}
        erase = partial(_erase, cli, store, what)
        if dry_run or not yes:
            going = erase(dry_run=True)
            document, lines = _document(going), _preview(going)
            status = status_of_preview(cli, "erase/1", document, lines, dry_run=dry_run)
            if status is not None:
                return status
        gone = erase()
    cli.out.done("erase/1", _document(gone), ("erased ", ""), *_counted(gone))
    cli.out.note(BACKUPS[gone.backups])
    return _status.OK


def _erase(
    cli: Invocation, store: Store, what: dict[str, Any], *, dry_run: bool = False
) -> Erasure:
    with cli.progress("Looking" if dry_run else "Erasing") as progress:
        return store.erase(**what, dry_run=dry_run, progress=progress)


def _document(receipt: Erasure) -> dict[str, object]:
    found: dict[str, object] = msgspec.json.decode(receipt.to_json())
    return found


def _preview(going: Erasure) -> Iterator[Line]:
    yield (("would erase ", ""), *_counted(going))


def _counted(gone: Erasure) -> Line:
    threads = counted(gone.threads, "thread")
    checkpoints = counted(gone.checkpoints, "checkpoint")
    return (
        (f"{threads} and {checkpoints}", "removed"),
        (f", {size(gone.bytes)}", ""),
    )
