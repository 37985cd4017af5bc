"""`holdfast prune`: remove checkpoints and threads by a retention policy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import click

from holdfast._engine.upkeep.statistics import Statistics
from holdfast._port import Pruned
from holdfast.cli import _command, _exit_status
from holdfast.cli._confirmation import confirmed
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import as_age, dry_run_option, yes_option
from holdfast.cli._text import counted, size
from holdfast.cli.terminal.tables import Line
from holdfast.retention import Retention, Thin

_COUNT = click.IntRange(min=1)


@_command.command("prune")
@click.option(
    "--keep-last",
    "last",
    type=_COUNT,
    metavar="N",
    help="Keep the last N of each thread.",
)
@click.option(
    "--keep-within",
    "within",
    callback=as_age,
    metavar="AGE",
    help="Keep those younger than AGE: 30d, 12h.",
)
@click.option(
    "--keep-hourly",
    "hourly",
    type=_COUNT,
    metavar="N",
    help="Keep the last of each of N hours.",
)
@click.option(
    "--keep-daily",
    "daily",
    type=_COUNT,
    metavar="N",
    help="Keep the last of each of N days.",
)
@click.option(
    "--keep-weekly",
    "weekly",
    type=_COUNT,
    metavar="N",
    help="Keep the last of each of N weeks.",
)
@click.option("--not-labelled", is_flag=True, help="Also remove labelled checkpoints.")
@click.option("--not-tagged", is_flag=True, help="Also remove tagged checkpoints.")
@click.option(
    "--not-forks", is_flag=True, help="Also remove checkpoints at which a fork began."
)
@click.option(
    "--drop-idle",
    "idle",
    callback=as_age,
    metavar="AGE",
    help="Remove threads not used for AGE.",
)
@click.option(
    "--drop-beyond",
    "threads_per_owner",
    type=_COUNT,
    metavar="N",
    help="Remove all threads of an owner except the N used last.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Let --drop rules remove only threads of this kind.",
)
@dry_run_option
@yes_option
def command(invocation: Invocation, *, dry_run: bool, yes: bool, **rules: Any) -> int:
    """Remove the checkpoints that no rule keeps.

    A checkpoint stays if one of the `--keep` rules keeps it; without such a rule, all
    stay. Heads always stay. Checkpoints that are labelled, tagged or the start of a
    fork stay unless a `--not` option is given. `--drop` rules remove whole threads.
    Shows what would be removed and asks first; run `compact` afterwards to return the
    space to the file system.
    """
    policy = _policy(**rules)
    with invocation.writing() as store:
        if dry_run or not yes:
            before, going = store.stats(), store.prune(policy, dry_run=True)
            preview = _preview(before, going)
            if dry_run:
                document = _document(going, dry_run=True)
                invocation.out.answer("prune/1", document, preview)
                return _exit_status.OK
            if going == Pruned():
                invocation.out.done(
                    "prune/1", _document(going), ("nothing to remove", "")
                )
                return _exit_status.OK
            if not confirmed(invocation, preview, yes=yes):
                return _exit_status.NEGATIVE
        gone = store.prune(policy)
    invocation.out.done("prune/1", _document(gone), ("removed ", ""), *_counted(gone))
    return _exit_status.OK


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
        text = "give a rule, such as --keep-last 20 or --keep-within 30d"
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
        (f", {size(gone.bytes)}", ""),
    )
