"""`holdfast log`: the history of a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from holdfast._api.store import Store
from holdfast.cli import _changes, _command
from holdfast.cli import _documents as _shown
from holdfast.cli._history import Asked, Found, find
from holdfast.cli._lanes import drawn, laid_out
from holdfast.cli._lineage import Kin
from holdfast.cli._messages import gist
from holdfast.cli._names import REFERENCE, short_id
from holdfast.cli._options import as_time, limit_option
from holdfast.cli._session import Session
from holdfast.cli._wording import worded
from holdfast.cli.terminal.output import Cell, Line, Output, Span
from holdfast.cli.terminal.tables import spaced
from holdfast.diff import Diff, diff
from holdfast.errors import HoldfastError


@_command.command("log", stream=True)
@click.argument("what", type=REFERENCE, required=False)
@click.option(
    "--graph", is_flag=True, help="Draw the thread with its forks and what was rewound."
)
@click.option("--all", is_flag=True, help="List what was rewound, too.")
@click.option("--oneline", is_flag=True, help="Only references, labels and tags.")
@click.option(
    "--since", callback=as_time, metavar="TIME", help="Up to the first that is older."
)
@click.option("--tag", metavar="TAG", help="Only those with this tag.")
@click.option("--label", metavar="LABEL", help="Only those with this label.")
@click.option("--changes", is_flag=True, help="Show what each of them changed.")
@limit_option(50)
def command(session: Session, *, oneline: bool, changes: bool, **question: Any) -> None:
    """Show the history of a thread, newest first, each with its last message.

    WHAT is a thread, a checkpoint to begin at, or a range A..B: what B has and A has
    not. Without it, the thread that was used last is shown.
    """
    asked = Asked(**question)
    if asked.graph and changes:
        raise click.UsageError(
            "a graph has no room for --changes; leave one of them out"
        )
    with session.reading() as store:
        found = find(session, store, asked)
        text = Text(session.out, store, oneline=oneline)
        differences = _differences(store, found.kin) if changes else None
        session.out.listing(
            ("checkpoint", "checkpoints"),
            _documents(found.kin, differences),
            text.graph(found) if asked.graph else text.lines(found, differences),
            schema="log/1",
            **_about(found),
        )


def _about(found: Found) -> dict[str, object]:
    about: dict[str, object] = {"thread": found.thread.id}
    if found.family is not None:
        about["threads"] = list(map(_shown.thread_document, found.family))
    return about


def _documents(
    kin: Iterable[Kin], differences: Iterator[Diff] | None
) -> Iterator[dict[str, object]]:
    for one in kin:
        document = _shown.checkpoint_document(one.checkpoint)
        document["rewound"] = one.is_rewound
        if differences is not None:
            found = next(differences).changes
            document["changes"] = list(map(_changes.change_document, found))
        yield document


def _differences(store: Store, kin: Iterable[Kin]) -> Iterator[Diff]:
    """What each changed; a state is loaded once where the next one is its parent."""
    known: dict[str | None, object] = {}
    for one in kin:
        if one.id not in known:
            known[one.id] = store.load(one.checkpoint)
        state = known[one.id]
        before = _changes.state_before(store, one.checkpoint, state)
        known = {one.parent: before}
        yield diff(before, state)


class Text:
    """A log for people."""

    def __init__(self, out: Output, store: Store, *, oneline: bool) -> None:
        self.out, self.store, self.oneline = out, store, oneline

    def lines(self, found: Found, differences: Iterator[Diff] | None) -> Iterator[Line]:
        """A line for each checkpoint, with its changes below it."""
        gists = self._gists(found)
        for line in self.out.table(self._row(kin, found, gists) for kin in found.kin):
            yield line
            if differences is not None:
                changed = _changes.change_lines(next(differences), "    ")
                yield from map(self.out.fitted, changed)

    def graph(self, found: Found) -> Iterator[Line]:
        """The same, with the tree they stand in."""
        glyphs, gists = self.out.glyphs, self._gists(found)
        rows: list[Sequence[Cell]] = []
        for row in laid_out(found.kin):
            sign = glyphs.rewound if row.node and row.node.is_rewound else glyphs.node
            lanes: Span = (drawn(row, glyphs, sign), "")
            rows.append(
                [lanes, *(self._row(row.node, found, gists) if row.node else ())]
            )
        return self.out.table(rows)

    def _gists(self, found: Found) -> dict[str, str]:
        """The last message of each, where it is not that of the one before already."""
        if self.oneline:
            return {}
        try:
            messages = self.store.last_messages([kin.checkpoint for kin in found.kin])
        except HoldfastError as error:
            # A history can be told without them, of a damaged store above all.
            self.out.note(f"messages are left out: {worded(str(error))}")
            return {}
        last = {kin.id: said for kin, said in zip(found.kin, messages, strict=True)}
        return {
            kin.id: gist(last[kin.id])
            for kin in found.kin
            if last[kin.id] is not None and last[kin.id] != last.get(kin.parent or "")
        }

    def _row(self, kin: Kin, found: Found, gists: dict[str, str]) -> list[Cell]:
        checkpoint = kin.checkpoint
        faint = "faint" if kin.is_rewound else ""
        reference: Span = (self._reference(kin, found), faint or "reference")
        if self.oneline:
            return [reference, spaced(_marks(kin))]
        return [
            reference,
            (_shown.time(checkpoint.saved_at), "faint"),
            (checkpoint.kind, faint),
            spaced(
                [
                    *_marks(kin),
                    (gists.get(kin.id, ""), faint),
                    (_shown.pairs(checkpoint.metadata), "faint"),
                ]
            ),
        ]

    def _reference(self, kin: Kin, found: Found) -> str:
        if kin.is_rewound:
            return short_id(self.store, kin.id)
        own = kin.checkpoint.thread
        names = kin.threads
        name = next((n for n in (found.thread.id, own) if n in names), names[0])
        return f"{name}@{kin.checkpoint.step}"


def _marks(kin: Kin) -> list[Span]:
    heads = [(f"({name})", "head") for name in kin.heads]
    return [*heads, *_shown.marks(kin.checkpoint)]
