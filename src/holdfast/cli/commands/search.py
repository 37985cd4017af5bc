"""`holdfast search`: messages that hold a text."""

from __future__ import annotations

import click

from holdfast._api.store import Store
from holdfast._engine.search.query import Match
from holdfast._messages.transcript import text_of
from holdfast.cli import _command, _documents, _exits
from holdfast.cli._options import limit_option
from holdfast.cli._session import Session
from holdfast.cli.terminal.output import Cell
from holdfast.errors import Unsupported


@_command.command("search", stream=True)
@click.argument("text")
@click.option("--conversation", metavar="ID", help="Only in this conversation.")
@click.option("--agent", metavar="NAME", help="Only in those of this agent.")
@click.option("--owner", metavar="NAME", help="Only in those of this owner.")
@click.option("--archived/--current", default=None, help="Only in such conversations.")
@limit_option(20)
def command(
    session: Session,
    *,
    text: str,
    conversation: str | None,
    agent: str | None,
    owner: str | None,
    archived: bool | None,
    limit: int,
) -> int:
    """Find messages that hold TEXT, in any case, newest first.

    The first search makes an index in the store, unless it may only be read.
    """
    with _opened(session) as store, session.progress("indexing") as progress:
        found = store.search(
            text,
            conversation=conversation,
            agent=agent,
            owner=owner,
            archived=archived,
            limit=limit,
            progress=progress,
        )
    session.out.listing(
        ("match", "matches"),
        map(_document, found),
        session.out.table(map(_row, found)),
        schema="search/1",
    )
    return _exits.OK if found else _exits.NEGATIVE


def _opened(session: Session) -> Store:
    if session.settings.read_only:
        return session.reading()
    try:
        return session.writing()
    except Unsupported as error:
        if error.code != "read_only":
            raise
        return session.reading()


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
        "updated_at": _documents.iso(match.updated_at),
    }


def _row(match: Match) -> list[Cell]:
    return [
        (f"{match.conversation}[{match.position}]", "reference"),
        (match.role, "name"),
        (match.snippet, ""),
    ]
