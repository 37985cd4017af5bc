"""`holdfast prune`: remove what a retention policy does not keep."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import click

from holdfast._engine.upkeep.statistics import Statistics
from holdfast._port import Pruned
from holdfast.cli import _command, _documents, _exits
from holdfast.cli._ages import as_age
from holdfast.cli._ask import agreed
from holdfast.cli._counted import counted
from holdfast.cli._options import dry_run_option, yes_option
from holdfast.cli._session import Session
from holdfast.cli.terminal.output import Line
from holdfast.retention import Retention, Thin

_COUNT = click.IntRange(min=1)


@_command.command("prune")
@click.option(
    "--keep-last", "last", type=_COUNT, metavar="N", help="Of each thread the last N."
)
@click.option(
    "--keep-within",
    "within",
    callback=as_age,
    metavar="AGE",
    help="What is not older: 30d, 12h.",
)
@click.option(
    "--keep-hourly", "hourly", type=_COUNT, metavar="N", help="The last of N hours."
)
@click.option(
    "--keep-daily", "daily", type=_COUNT, metavar="N", help="The last of N days."
)
@click.option(
    "--keep-weekly", "weekly", type=_COUNT, metavar="N", help="The last of N weeks."
)
@click.option("--not-labelled", is_flag=True, help="Labels keep nothing.")
@click.option("--not-tagged", is_flag=True, help="Tags keep nothing.")
@click.option(
    "--not-forks", is_flag=True, help="That a fork began there keeps nothing."
)
@click.option(
    "--drop-idle",
    "idle",
    callback=as_age,
    metavar="AGE",
    help="Threads not used for so long.",
)
@click.option(
    "--drop-beyond",
    "threads_per_owner",
    type=_COUNT,
    metavar="N",
    help="Of each owner all threads but the N used last.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Drop only threads of this kind.",
)
@dry_run_option
@yes_option
def command(session: Session, *, dry_run: bool, yes: bool, **rules: Any) -> int:
    """Remove what no rule keeps.

    Of each thread's checkpoints everything stays that one of the `--keep` rules keeps;
    without any, all stay. Heads always stay, and so does what is labelled, tagged or
    where a fork began, unless a `--not` option says otherwise. `--drop` rules remove
    whole threads. Shows what would go and asks first; `compact` gives the space back
    to the file system afterwards.
    """
    policy = _policy(**rules)
    with session.writing() as store:
        if dry_run or not yes:
            before, going = store.stats(), store.prune(policy, dry_run=True)
            preview = _preview(before, going)
            if dry_run:
                document = _document(going, dry_run=True)
                session.out.answer("prune/1", document, preview)
                return _exits.OK
            if going == Pruned():
                session.out.done("prune/1", _document(going), ("nothing to remove", ""))
                return _exits.OK
            if not agreed(session, preview, yes=yes):
                return _exits.NEGATIVE
        gone = store.prune(policy)
    session.out.done("prune/1", _document(gone), ("removed ", ""), *_counted(gone))
    return _exits.OK


def _policy(
    *,
    hourly: int | None,
    daily: int | None,
    weekly: int | None,
    not_labelled: bool,
    not_tagged: bool,
    not_forks: bool,
    kinds: tuple[str, ...],
    **rules: int | timedelta | None,
) -> Retention:
    thin = None
    if (hourly, daily, weekly) != (None, None, None):
        thin = Thin(hourly=hourly or 0, daily=daily or 0, weekly=weekly or 0)
    named: dict[str, Any] = dict(rules)
    policy = Retention(
        thin=thin,
        labelled=not not_labelled,
        tagged=not not_tagged,
        forks=not not_forks,
        kinds=kinds or None,
        **named,
    )
    if not (policy.thins_threads or policy.drops_threads):
        text = "say what to keep, such as --keep-last 20 or --keep-within 30d"
        raise click.UsageError(text)
    return policy


def _document(gone: Pruned, *, dry_run: bool = False) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "threads": gone.threads,
        "checkpoints": gone.checkpoints,
        "segments": gone.segments,
        "bytes": gone.bytes,
    }


def _preview(before: Statistics, going: Pruned) -> Iterator[Line]:
    if going == Pruned():
        yield (("nothing to remove", ""),)
        return
    yield (("would remove ", ""), *_counted(going))
    left = before.checkpoints - going.checkpoints
    yield ((f"{left:,} of {before.checkpoints:,} checkpoints stay", "faint"),)


def _counted(gone: Pruned) -> Line:
    threads = f" and {counted(gone.threads, 'thread')}" if gone.threads else ""
    return (
        (f"{counted(gone.checkpoints, 'checkpoint')}{threads}", "removed"),
        (f", {_documents.size(gone.bytes)}", ""),
    )
