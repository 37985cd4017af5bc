"""`holdfast search`: messages that contain some words."""

from __future__ import annotations

from typing import Any, get_args

import click

from holdfast._api.store import Store
from holdfast._engine.search.query import Match, Per
from holdfast._messages.transcript import text_of
from holdfast.cli import _command, _status
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import count_option, limit_option, option
from holdfast.cli.terminal.tables import Cell
from holdfast.errors import Unsupported
from holdfast.views.documents import iso


@_command.command("search", stream=True)
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@option("--conversation", "ID", "Only in this conversation.")
@option("--agent", "NAME", "Only in conversations of this agent.")
@option("--owner", "NAME", "Only in conversations of this owner.")
@click.option(
    "--archived/--current",
    default=None,
    help="Only in archived, or only in current conversations.",
)
@click.option(
    "--per",
    type=click.Choice(get_args(Per)),
    default="message",
    help="Show each message, or only the last one of each conversation.",
)
@count_option("--after", "Go on after this CURSOR of a page.", metavar="CURSOR")
@limit_option(20)
def command(cli: Invocation, *, words: tuple[str, ...], **wanted: Any) -> int:
    """Find messages that contain all of some words, newest first.

    Upper and lower case are treated alike, and a WORD may be part of a longer one. To
    find words that stand together, quote them twice: '"train to Lyon"'. The first
    search creates an index in the store, unless the store is read-only.
    """
    text = " ".join(words)
    with _opened(cli) as store:
        with cli.progress("indexing") as progress:
            found = store.search(text, **wanted, progress=progress)
        more = _has_more(store, text, wanted, found.cursor)
    cli.out.listing(
        ("match", "matches"),
        map(_document, found),
        cli.out.table(map(_row, found)),
        schema="search/1",
        more=more,
        cursor=found.cursor if more else None,
    )
    if more:
        cli.out.note(f"there is more; go on with --after {found.cursor}")
    elif not found:
        cli.out.note("nothing found; try fewer words, or only a part of one")
    return _status.OK if found else _status.NEGATIVE


def _has_more(
    store: Store, text: str, wanted: dict[str, Any], cursor: int | None
) -> bool:
    """True if there is a match after a page: a page that is full may be the last."""
    if cursor is None:
        return False
    following: dict[str, Any] = {**wanted, "limit": 1, "after": cursor}
    return bool(store.search(text, **following))


def _opened(cli: Invocation) -> Store:
    if cli.options.read_only:
        return cli.reading()
    try:
        return cli.writing()
    except Unsupported as error:
        if error.code != "read_only":
            raise
        return cli.reading()


def _document(match: Match) -> dict[str, object]:
    return {
        "conversation": match.conversation,
        "position": match.position,
        "role": match.role,
        "text": text_of(match.message),
        "snippet": match.snippet,
        "title": match.title,
        "owner": match.owner,
        "agent": match.agent,
        "updated_at": iso(match.updated_at),
    }


def _row(match: Match) -> list[Cell]:
    return [
        (f"{match.conversation}[{match.position}]", "reference"),
        (match.role, "name"),
        (match.snippet, ""),
    ]
