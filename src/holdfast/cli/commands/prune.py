"""`holdfast prune`: remove checkpoints and threads by a retention policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import click
import msgspec

from holdfast._api.store import Store
from holdfast._engine.upkeep.statistics import Statistics
from holdfast._port import Pruned
from holdfast.cli import _command, _status
from holdfast.cli._completion import THREAD
from holdfast.cli._confirmation import status_of_preview
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import (
    F,
    as_age,
    count_option,
    dry_run_option,
    flag,
    option,
    yes_option,
)
from holdfast.cli._resolve import thread_named
from holdfast.cli._text import counted, size
from holdfast.cli.terminal.tables import Line
from holdfast.retention import Retention, Thin

SCHEMA = "prune/1"


def _age(names: str, text: str) -> Callable[[F], F]:
    return option(names, "AGE", text, callback=as_age)


@_command.command("prune")
@count_option("--keep-last last", "Keep the last N of each thread.")
@_age("--keep-within within", "Keep those younger than AGE: 30d, 12h.")
@count_option("--keep-hourly hourly", "Keep the last of each of N hours.")
@count_option("--keep-daily daily", "Keep the last of each of N days.")
@count_option("--keep-weekly weekly", "Keep the last of each of N weeks.")
@flag("--not-labelled", help="Also remove labelled checkpoints.")
@flag("--not-tagged", help="Also remove tagged checkpoints.")
@flag("--not-forks", help="Also remove checkpoints at which a fork began.")
@_age("--drop-idle idle", "Remove threads not used for AGE.")
@count_option(
    "--drop-beyond threads_per_owner",
    "Remove all threads of an owner except the N used last.",
)
@count_option(
    "--drop-beyond-in-all threads_in_all",
    "Remove all threads except the N used last.",
)
@option("--kind kinds", "KIND", "Prune only threads of this kind.", multiple=True)
@option("--thread", "THREAD", "Prune only this thread.", type=THREAD)
@option("--agent", "NAME", "Prune only threads of this agent.")
@option("--owner", "NAME", "Prune only threads of this owner.")
@option("--prefix", "TEXT", "Prune only threads whose name starts with TEXT.")
@dry_run_option
@yes_option
def command(
    cli: Invocation,
    *,
    thread: str | None,
    agent: str | None,
    owner: str | None,
    prefix: str | None,
    dry_run: bool,
    yes: bool,
    **rules: Any,
) -> int:
    """Remove the checkpoints that no rule keeps.

    A checkpoint stays if one of the `--keep` rules keeps it; without such a rule, all
    stay. Heads always stay. Checkpoints that are labelled, tagged or the start of a
    fork stay unless a `--not` option is given. `--drop` rules remove whole threads.
    With `--kind`, `--thread`, `--agent`, `--owner` and `--prefix`, all other threads
    stay as they are. Shows what would be removed and asks first; run `compact`
    afterwards to return the space to the file system.
    """
    policy = _policy(**rules)
    with cli.writing() as store:
        named = None if thread is None else thread_named(store, thread).id
        scope = {"thread": named, "agent": agent, "owner": owner, "prefix": prefix}
        prune = partial(_prune, cli, store, policy, scope)
        if dry_run or not yes:
            status = _ask(cli, store.stats(), prune(dry_run=True), dry_run=dry_run)
            if status is not None:
                return status
        gone = prune()
    cli.out.done(SCHEMA, _document(gone), ("removed ", ""), *_counted(gone))
    return _status.OK


def _ask(
    cli: Invocation, before: Statistics, going: Pruned, *, dry_run: bool
) -> int | None:
    """The status with which the command ends, ``None`` if it is to go on."""
    if going == Pruned() and not dry_run:
        cli.out.done(SCHEMA, _document(going), ("nothing to remove", ""))
        return _status.OK
    document, lines = _document(going, dry_run=True), _preview(before, going)
    return status_of_preview(cli, SCHEMA, document, lines, dry_run=dry_run)


def _prune(
    cli: Invocation,
    store: Store,
    policy: Retention,
    scope: dict[str, str | None],
    *,
    dry_run: bool = False,
) -> Pruned:
    with cli.progress("Looking" if dry_run else "Pruning") as progress:
        return store.prune(policy, dry_run=dry_run, progress=progress, **scope)


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
    return {"dry_run": dry_run, **msgspec.structs.asdict(gone)}


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
