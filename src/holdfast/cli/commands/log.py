"""`holdfast log`: the history of a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import click
from msgspec.structs import replace

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint
from holdfast.cli import _command, _followed_log
from holdfast.cli._completion import REFERENCE
from holdfast.cli._invocation import Invocation
from holdfast.cli._log_text import LogText, Shown
from holdfast.cli._options import (
    bookkeeping_flag,
    flag,
    open_limit_option,
    option,
    since_option,
)
from holdfast.cli._resolve import (
    last_used,
    locate,
    locate_in,
    locate_range,
    near_mark,
)
from holdfast.cli._text import shell_word
from holdfast.cli.terminal.tables import Line
from holdfast.errors import NotFound
from holdfast.views import history
from holdfast.views.documents import thread_document
from holdfast.views.history import HistoryFilter, HistoryListing
from holdfast.views.references import Revision

# How many are listed where no pager shows them, and how many are read at once for one.
SCREENFUL, CHUNK = 50, 200
Finder: TypeAlias = Callable[[HistoryFilter], HistoryListing]


@_command.command("log", stream=True)
@click.argument("what", type=REFERENCE, required=False)
@flag(
    "--graph", help="Draw the thread, its forks and the rewound checkpoints as a tree."
)
@flag("--all", help="Include checkpoints that were rewound.")
@flag("--oneline", help="Print only references, labels and tags.")
@since_option("Stop at the first checkpoint that is older than TIME.")
@option("--tag", "TAG", "Only checkpoints with this tag.")
@option("--label", "LABEL", "Only checkpoints with this label.")
@flag("--changes", help="Show what each checkpoint changed.")
@flag("--follow", "-f", help="Oldest first, then wait and print what is saved.")
@option("--before", "REF", "Go on after this checkpoint: the last of a page.")
@bookkeeping_flag
@open_limit_option(SCREENFUL)
def command(
    cli: Invocation,
    *,
    what: str | None,
    graph: bool,
    changes: bool,
    follow: bool,
    oneline: bool,
    bookkeeping: bool,
    before: str | None,
    **given: Any,
) -> None:
    """List the checkpoints of a thread, newest first.

    WHAT is a thread, a checkpoint to start at, or a range A..B: the checkpoints that
    lead to B and not to A. Without WHAT, the thread that was used last is listed. Each
    checkpoint is shown with its last message. Bookkeeping of LangGraph and of
    conversations is hidden, unless --verbose is given.
    """
    wanted = HistoryFilter(**given)
    _check_flags(cli, graph=graph, changes=changes, follow=follow)
    shown = Shown(
        oneline=oneline,
        verbose=bookkeeping or cli.options.verbose,
        changes=changes,
        clock_times=follow,
    )
    with cli.reading() as store:
        find, thread = _finder(cli, store, what, wanted, graph=graph)
        if before is not None:
            wanted = replace(wanted, before=_last(store, thread, before))
        if follow:
            _followed_log.followed(cli, store, find(_limited(wanted)), shown)
        else:
            _print(cli, store, find, wanted=wanted, shown=shown, graph=graph)


def _print(
    cli: Invocation,
    store: Store,
    find: Finder,
    *,
    wanted: HistoryFilter,
    shown: Shown,
    graph: bool,
) -> None:
    is_endless = wanted.limit is None and cli.out.is_paged and not graph
    asked = replace(wanted, limit=CHUNK) if is_endless else _limited(wanted)
    listing = find(asked)
    text = LogText(cli.out, store, listing, shown)
    rest = _rest(find, asked, text) if is_endless else ()
    cli.out.listing(
        ("checkpoint", "checkpoints"),
        text.documents(),
        text.graph() if graph else chain(text.lines(), rest),
        schema="log/1",
        **_about(listing),
    )
    if listing.more and not is_endless:
        last = shell_word(text.reference(listing.entries[-1]))
        cli.out.note(f"there is more; go on with --before {last}")
    _note_near_marks(cli, store, listing, wanted)


def _limited(wanted: HistoryFilter) -> HistoryFilter:
    return wanted if wanted.limit is not None else replace(wanted, limit=SCREENFUL)


def _rest(find: Finder, asked: HistoryFilter, text: LogText) -> Iterator[Line]:
    """The lines after those of a text, read as the pager asks for them."""
    while text.listing.more:
        last = text.listing.entries[-1].checkpoint
        text = text.continued(find(replace(asked, before=last)))
        yield from text.lines()


def _check_flags(cli: Invocation, *, graph: bool, changes: bool, follow: bool) -> None:
    if graph and changes:
        raise click.UsageError(
            "a graph has no room for --changes; leave one of them out"
        )
    if follow and (graph or cli.options.json):
        raise click.UsageError(
            "--follow prints line by line; leave --graph out, and use --ndjson"
        )


def _note_near_marks(
    cli: Invocation, store: Store, listing: HistoryListing, wanted: HistoryFilter
) -> None:
    """Suggest a label or tag if the one that was asked for is on no checkpoint."""
    thread = store.thread(listing.thread)
    for kind, name in (("label", wanted.label), ("tag", wanted.tag)):
        if listing.entries or name is None:
            continue
        near = near_mark(thread, kind, name)
        if near is not None and near != name:
            cli.out.note(f"no checkpoint has the {kind} {name}; did you mean {near}?")


def _finder(
    cli: Invocation,
    store: Store,
    what: str | None,
    wanted: HistoryFilter,
    *,
    graph: bool,
) -> tuple[Finder, Thread]:
    """The function that gives the listing for a filter, from where the user said."""
    ends = locate_range(store, what) if what else None
    _check(wanted, graph=graph, is_range=ends is not None)
    if ends is not None:
        return partial(history.difference, *ends), ends[1].thread
    start = locate(store, what) if what is not None else _last_used(cli, store)
    listed = partial(history.tree, store) if graph else history.line
    return lambda asked: replace(listed(start, asked), named=start.named), start.thread


def _last(store: Store, thread: Thread, before: str) -> Checkpoint:
    """The last checkpoint of the listing that is continued."""
    found = locate_in(store, thread, before)
    if found.family != thread.get().family:
        text = f"{before} has no history in common with {thread.id}; leave --before out"
        raise NotFound(text, thread=thread.id, reference=before)
    return found


def _check(wanted: HistoryFilter, *, graph: bool, is_range: bool) -> None:
    if graph and (wanted.leaves_gaps or is_range):
        raise click.UsageError("--graph draws the whole tree; leave the filters out")
    if is_range and wanted.all:
        raise click.UsageError("a range is one line; leave --all out")
    if is_range and wanted.leaves_gaps:
        raise click.UsageError(
            "a range lists every checkpoint; leave --tag and --label out"
        )


def _last_used(cli: Invocation, store: Store) -> Revision:
    start, is_one_of_many = last_used(store)
    if is_one_of_many:
        cli.out.note(f"thread {start.thread.id}, which was used last")
    return start


def _about(listing: HistoryListing) -> dict[str, object]:
    cursor = listing.entries[-1].checkpoint.id if listing.more else None
    about: dict[str, object] = {"thread": listing.thread}
    about |= {"more": listing.more, "cursor": cursor}
    if listing.family is not None:
        about["threads"] = list(map(thread_document, listing.family))
    return about
