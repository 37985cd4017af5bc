"""`holdfast diff`: what changed from one checkpoint to another."""

from __future__ import annotations

from collections.abc import Iterator

import click

from holdfast._api.store import Store
from holdfast.cli import _changes, _command, _exits
from holdfast.cli._names import (
    REFERENCE,
    Place,
    locate,
    locate_fork,
    locate_range,
    shown_reference,
)
from holdfast.cli._session import Session
from holdfast.cli.terminal.output import Line, Output, plain
from holdfast.diff import Diff


@_command.command("diff")
@click.argument("a", type=REFERENCE)
@click.argument("b", type=REFERENCE, required=False)
@click.option("--stat", is_flag=True, help="Only count, for each value of the state.")
@click.option("--path", metavar="PATH", help="Only what stands at this path.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if there is a difference.")
@click.option("--json-patch", is_flag=True, help="Print the operations of RFC 6902.")
def command(
    session: Session,
    *,
    a: str,
    b: str | None,
    stat: bool,
    path: str | None,
    exit_code: bool,
    json_patch: bool,
) -> int:
    """Show what changed from A to B, value by value.

    Without B, from A to the head of its thread; A..B is the same as A B, and A...B is
    from where both parted to B. A path is written as messages[3].content or
    /messages/3/content.
    """
    with session.reading() as store:
        old, new = _ends(store, a, b)
        found = old.thread.diff(old.checkpoint, new.checkpoint)
        names = [shown_reference(store, p.checkpoint, p.thread) for p in (old, new)]
    found = _changes.only_at(found, path)
    if json_patch:
        session.out.patch(plain(found.patch()))
    else:
        session.out.answer(
            "diff/1",
            _document(old, new, found),
            _lines(session.out, names, found, stat=stat),
        )
    return _exits.NEGATIVE if exit_code and len(found) else _exits.OK


def _ends(store: Store, a: str, b: str | None) -> tuple[Place, Place]:
    ends = (locate_fork(store, a) or locate_range(store, a)) if b is None else None
    if ends is not None:
        return ends
    old = locate(store, a)
    if b is not None:
        return old, locate(store, b)
    return old, Place(old.thread, old.thread.get())


def _document(old: Place, new: Place, found: Diff) -> dict[str, object]:
    return {
        "a": {"thread": old.thread.id, "checkpoint": old.checkpoint.id},
        "b": {"thread": new.thread.id, "checkpoint": new.checkpoint.id},
        "added": len(found.added),
        "removed": len(found.removed),
        "changed": len(found.changed),
        "changes": list(map(_changes.change_document, found.changes)),
    }


def _lines(out: Output, names: list[str], found: Diff, *, stat: bool) -> Iterator[Line]:
    old, new = names
    yield ((f"{old} {out.glyphs.arrow} {new}", "title"),)
    if not stat:
        yield from _changes.change_lines(found)
        return
    yield from out.table(
        [
            (name, "name"),
            *((f"{sign}{tally[op]}", op) for op, sign in _changes.SIGNS.items()),
        ]
        for name, tally in _changes.tallies(found).items()
    )
    yield ((_changes.counts(found), "faint"),)
