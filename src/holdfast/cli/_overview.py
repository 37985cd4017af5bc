"""`holdfast` alone: where everything stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast._api.store import Store
from holdfast._values.records import Page, ThreadRecord
from holdfast.cli import _documents
from holdfast.cli._names import shown_reference
from holdfast.cli._place import without_password
from holdfast.cli._session import Session
from holdfast.cli.terminal.output import Cell, Line
from holdfast.cli.terminal.tables import spaced
from holdfast.errors import NotFound

MOST = 20


def overview(session: Session) -> None:
    """Print the threads that were used last, with their heads and forks."""
    with session.reading() as store:
        threads = store.threads(limit=MOST)
        document = {
            "store": without_password(session.address),
            "threads": list(map(_documents.thread_document, threads)),
        }
        session.out.answer("overview/1", document, _lines(session, store, threads))


def _lines(
    session: Session, store: Store, threads: Page[ThreadRecord]
) -> Iterator[Line]:
    out = session.out
    yield (("store ", "faint"), (without_password(session.address), "name"))
    if not threads:
        yield (("it has no threads yet", ""),)
        return
    yield ()
    rows = [row for kin in _families(threads) for row in _rows(session, store, kin)]
    yield from out.table(rows)
    if threads.cursor is not None:
        yield ()
        yield ((f"and more: holdfast threads -n {2 * MOST}", "faint"),)


def _families(threads: Sequence[ThreadRecord]) -> list[list[ThreadRecord]]:
    """Threads by family, in each what was forked from nothing first."""
    families: dict[int, list[ThreadRecord]] = {}
    for thread in threads:
        families.setdefault(thread.family, []).append(thread)
    return [
        sorted(kin, key=lambda thread: thread.forked_from is not None)
        for kin in families.values()
    ]


def _rows(
    session: Session, store: Store, kin: Sequence[ThreadRecord]
) -> Iterator[Sequence[Cell]]:
    glyphs = session.out.glyphs
    for place, thread in enumerate(kin):
        head = thread.head
        assert head is not None  # only threads that were saved to are listed
        last = place == len(kin) - 1
        sign = f"{glyphs.end if last else glyphs.branch}{glyphs.across} "
        yield [
            ((sign if place else "", "faint"), (thread.id, "name")),
            (f"@{head.step}", "reference"),
            (_documents.time(head.saved_at), "faint"),
            (head.kind, ""),
            spaced([*_documents.marks(head), (_origin(store, thread), "faint")]),
        ]


def _origin(store: Store, thread: ThreadRecord) -> str:
    origin = thread.forked_from
    if origin is None:
        return ""
    try:
        source = store.thread(origin.thread)
        begun = source.get(origin.checkpoint)
        return f"forked from {shown_reference(store, begun, source)}"
    except NotFound:
        return f"forked from {origin.thread}"
