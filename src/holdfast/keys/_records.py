"""Records as they are stored in an encrypted store, and back.

The content of each ciphertext, and the facts it is bound to, are listed only here:

| stored as | holds | is bound to |
|---|---|---|
| manifest | salt, thread, digest, metadata, itself | id, step, time, kind, size, runs |
| link | digest | id of the checkpoint |
| thread metadata | salt, metadata | name, kind, owner, agent, origin |
| segment | bytes | salt, number, packing and what else a segment says |
| journal value | thread, value | checkpoint, key |

Moves are not encrypted; `_moves.py` says what they are bound to.

The salt is that of the family: the number of a family is not known when its first
records are encrypted, and changes when they are imported elsewhere.

The thread of a checkpoint or an entry is inside, and is compared after decrypting:
salvage can then read what is left of a thread whose own row is lost.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast._port import Details, KindCount, Pieces, Start, Stored
from holdfast._values.graves import ERASED
from holdfast._values.graves import PREFIX as GRAVE
from holdfast._values.records import (
    SEPARATOR,
    Change,
    Checkpoint,
    Entry,
    Move,
    Origin,
    Segment,
    ThreadRecord,
    Unset,
)
from holdfast.errors import Corrupt
from holdfast.keys._ciphers import MARK, ContentKey, MissingKeyError
from holdfast.keys._moves import MoveProofs, divided
from holdfast.keys._ring import SALT, KeyRing

R = TypeVar("R")

# Kinds that say nothing about a caller; all others are encrypted like names.
OWN_KINDS = frozenset({
    "thread", "agent", "conversation", "document", "checkpoints", "pin",
    "save", "append", "amend", "rewind", "undo", "redo", "fork", "mark", "describe",
    "forget", "prune", "delete", "record", ERASED,
})  # fmt: skip
THREAD_TAG = 16
# The salt, the thread, and the sizes of digest and metadata.
_HEAD = struct.Struct(f">{SALT}s{THREAD_TAG}sBI")
# Flag beside the size of a digest: all moves of the store had proofs at this save.
WITH_PROOFS = 0x80
# The word for a save in the log of a thread; it is no move of its own.
SAVE = "save"
# The entries of the feed whose subject is a journal key.
JOURNAL = "record"
FAMILIES = 65536
DESTROYED_KEY = "the key of its owner was destroyed"
FOREIGN_HEAD = "its head belongs to another thread"


class Family(NamedTuple):
    """The key of a family's contents, and the salt they are bound to."""

    key: ContentKey
    salt: bytes


@lru_cache(4096)
def _tag(thread: str) -> bytes:
    return sha256(thread.encode()).digest()[:THREAD_TAG]


class Records:
    """Encodes records on their way down and decodes them on their way up.

    ``families`` are the families that were met. With ``lenient``, the names of lost
    threads, which a backend makes up for salvage, are accepted as they are.
    """

    def __init__(
        self,
        ring: KeyRing,
        families: dict[int, Family] | None = None,
        *,
        lenient: bool = False,
    ) -> None:
        self.ring = ring
        self.families = {} if families is None else families
        self.lenient = lenient
        self.proofs = MoveProofs(ring.move_key)
        # Whether a checkpoint says that the moves of the store have proofs.
        self.met_proofs = False

    async def loaded(self, decode: Callable[[], R]) -> R:
        """The result of decoding; keys that it needs are read first."""
        while True:
            try:
                return decode()
            except MissingKeyError as missing:
                await self.ring.load(missing.id)

    async def destroyed_key(self, content: bytes) -> bytes | None:
        """The id of the key that a content needs, if it was destroyed."""
        id_ = self.ring.contents.missing_key(content)
        if id_ is not None and id_ not in self.ring.destroyed:
            with contextlib.suppress(Corrupt):
                await self.ring.load(id_)
        return id_ if id_ in self.ring.destroyed else None

    # --- names ------------------------------------------------------------------------

    def hide(self, name: str, column: str) -> str:
        return self.ring.names.encode(name, column)

    def hide_any(self, name: str | None, column: str) -> str | None:
        return name if name is None else self.ring.names.encode(name, column)

    def show(self, hidden: str, column: str) -> str:
        # A digest that stands for the name of an erased thread was never a name.
        if hidden.rpartition(SEPARATOR)[2].startswith(GRAVE) or (
            self.lenient and MARK not in hidden
        ):
            return hidden
        return self.ring.names.decode(hidden, column)

    def show_any(self, hidden: str | None, column: str) -> str | None:
        return hidden if hidden is None else self.show(hidden, column)

    def hide_kind(self, kind: str) -> str:
        return kind if kind in OWN_KINDS else self.hide(kind, "kind")

    def show_kind(self, kind: str) -> str:
        return self.show(kind, "kind") if kind.startswith(MARK) else kind

    # --- segments ---------------------------------------------------------------------

    def hide_segment(self, segment: Segment, family: Family) -> Segment:
        place = _segment_place(segment, family.salt)
        data = self.ring.contents.encode(segment.data, place, family.key)
        return replace(segment, data=data)

    def show_segments(
        self, segments: Sequence[Segment], family: Family
    ) -> list[Segment]:
        salt = family.salt
        said = [(s.number, s.packing, s.count) for s in segments]
        found = self.ring.contents.decode_each(
            [segment.data for segment in segments],
            [_pack(salt, *numbers) for numbers in said],
            lambda place: f"segment {segments[place].number}",
        )
        # Made by their fields: `replace` takes three times as long.
        return [
            Segment(number, data, packing, count)
            for (number, packing, count), data in zip(said, found, strict=True)
        ]

    # --- checkpoints ------------------------------------------------------------------

    def hide_save(
        self, c: Checkpoint, segments: Sequence[Segment], family: Family
    ) -> tuple[Checkpoint, tuple[Segment, ...]]:
        """A checkpoint and its segments, encrypted together."""
        salt = family.salt
        manifest, *pieces = self.ring.contents.encode_each(
            [self._content(c, salt), *[s.data for s in segments]],
            [_checkpoint_place(c), *[_segment_place(s, salt) for s in segments]],
            family.key,
        )
        pairs = zip(segments, pieces, strict=True)
        stored = tuple([replace(segment, data=data) for segment, data in pairs])
        return self._hidden_checkpoint(c, manifest, family), stored

    def hide_checkpoint(self, c: Checkpoint, family: Family) -> Checkpoint:
        content, place = self._content(c, family.salt), _checkpoint_place(c)
        manifest = self.ring.contents.encode(content, place, family.key)
        return self._hidden_checkpoint(c, manifest, family)

    def _content(self, c: Checkpoint, salt: bytes) -> bytes:
        metadata = c.encoded_metadata
        digested = len(c.sha256) | (WITH_PROOFS if self.ring.has_proofs else 0)
        head = _HEAD.pack(salt, _tag(c.thread), digested, len(metadata))
        return b"".join((head, c.sha256, metadata, c.manifest))

    def _hidden_checkpoint(
        self, c: Checkpoint, manifest: bytes, family: Family
    ) -> Checkpoint:
        return replace(
            c,
            thread=self.hide(c.thread, "thread"),
            kind=self.hide_kind(c.kind),
            label=self.hide_any(c.label, "label"),
            tags=tuple([self.hide(tag, "tag") for tag in c.tags]) if c.tags else (),
            sha256=b"",
            manifest=manifest,
            encoded_metadata=b"",
            link=c.link and self.hide_link(c.link, c.id, family.key),
        )

    def show_checkpoint(self, c: Checkpoint) -> Checkpoint:
        return self.open_checkpoint(c)[0]

    def open_checkpoint(self, c: Checkpoint) -> tuple[Checkpoint, Family]:
        """A checkpoint and its family."""
        what = f"checkpoint {c.id!r}"
        contents = self.ring.contents
        kind = self.show_kind(c.kind)
        content = contents.decode(c.manifest, _checkpoint_place(c, kind), what)
        salt, tag, digested, described = _HEAD.unpack_from(content)
        if digested & WITH_PROOFS:
            self.met_proofs, digested = True, digested - WITH_PROOFS
        thread = self.show(c.thread, "thread")
        if tag != _tag(thread) and not (self.lenient and thread == c.thread):
            raise Corrupt(what, f"it does not belong to thread {thread!r}")
        family = Family(contents.key_of(c.manifest), salt)
        self.meet(c.family, family)
        metadata = _HEAD.size + digested
        manifest = metadata + described
        shown = replace(
            c,
            thread=thread,
            kind=kind,
            label=self.show_any(c.label, "label"),
            tags=tuple([self.show(tag, "tag") for tag in c.tags]),
            sha256=content[_HEAD.size : metadata],
            encoded_metadata=content[metadata:manifest],
            manifest=content[manifest:],
            link=c.link
            and contents.decode(c.link, _place("link", c.id), f"the link of {what}"),
        )
        return shown, family

    def hide_link(self, link: bytes, id_: str, key: ContentKey) -> bytes:
        return self.ring.contents.encode(link, _place("link", id_), key)

    def meet(self, number: int, family: Family) -> None:
        """Remember a family."""
        # Salvage reads all checkpoints before the first segment.
        if len(self.families) >= FAMILIES and not self.lenient:
            self.families.clear()
        self.families[number] = family

    # --- threads ----------------------------------------------------------------------

    def hide_thread(self, thread: ThreadRecord, family: Family) -> ThreadRecord:
        origin = thread.forked_from
        return replace(
            thread,
            id=self.hide(thread.id, "thread"),
            kind=self.hide_kind(thread.kind),
            owner=self.hide_any(thread.owner, "owner"),
            agent=self.hide_any(thread.agent, "agent"),
            head=thread.head and self.hide_checkpoint(thread.head, family),
            forked_from=origin and self._hide_origin(origin),
            encoded_metadata=b""
            if thread.deleted_at is not None
            else self._hide_metadata(
                thread.encoded_metadata, _place_of(thread), family
            ),
        )

    def show_thread(self, thread: ThreadRecord) -> ThreadRecord:
        return self.open_thread(thread)[0]

    def open_thread(self, thread: ThreadRecord) -> tuple[ThreadRecord, Family | None]:
        """A thread and its family, ``None`` if it was deleted.

        After the key of its owner was destroyed, as in an older copy of a store, it is
        shown as a thread to which nothing was saved: it can be listed and erased.
        """
        try:
            return self._open_thread(thread)
        except MissingKeyError as missing:
            if missing.id not in self.ring.destroyed or thread.deleted_at is not None:
                raise
            return self._outline(thread), None

    def _outline(self, thread: ThreadRecord) -> ThreadRecord:
        """A thread without its contents."""
        origin = thread.forked_from
        return replace(
            thread,
            id=self.show(thread.id, "thread"),
            kind=self.show_kind(thread.kind),
            owner=self.show_any(thread.owner, "owner"),
            agent=self.show_any(thread.agent, "agent"),
            forked_from=origin
            and Origin(self.show(origin.thread, "thread"), origin.checkpoint),
            head=None,
            encoded_metadata=b"",
        )

    def _open_thread(self, thread: ThreadRecord) -> tuple[ThreadRecord, Family | None]:
        shown = self._outline(thread)
        head, family = None, None
        if thread.head is not None:
            head, family = self.open_checkpoint(thread.head)
        if thread.deleted_at is not None:
            return replace(shown, head=head, encoded_metadata=b""), None
        what = f"thread {shown.id!r}"
        content = self.ring.contents.decode(
            thread.encoded_metadata, _place_of(shown), what
        )
        salt = content[:SALT]
        if family is not None and family.salt != salt:
            raise Corrupt(what, FOREIGN_HEAD)
        if family is None:
            key = self.ring.contents.key_of(thread.encoded_metadata)
            family = Family(key, salt)
            self.meet(thread.family, family)
        return replace(shown, head=head, encoded_metadata=content[SALT:]), family

    def hide_start(self, start: Start, name: str, family: Family) -> Start:
        place = _thread_place(name, start.kind, start.owner, start.agent, start.origin)
        return replace(
            start,
            kind=self.hide_kind(start.kind),
            owner=self.hide_any(start.owner, "owner"),
            agent=self.hide_any(start.agent, "agent"),
            metadata=self._hide_metadata(start.metadata, place, family),
            origin=start.origin and self._hide_origin(start.origin),
        )

    def hide_details(
        self, details: Details, thread: ThreadRecord, family: Family
    ) -> Details:
        """Owner, agent and metadata together, because the last is bound to the others.

        ``thread`` is what the details are about, decoded.
        """
        owner = thread.owner if isinstance(details.owner, Unset) else details.owner
        agent = thread.agent if isinstance(details.agent, Unset) else details.agent
        metadata = details.metadata
        if isinstance(metadata, Unset):
            metadata = thread.encoded_metadata
        place = _place_of(replace(thread, owner=owner, agent=agent))
        return Details(
            self.hide_any(owner, "owner"),
            self._hide_metadata(metadata, place, family),
            self.hide_any(agent, "agent"),
        )

    def _hide_metadata(self, metadata: bytes, place: bytes, family: Family) -> bytes:
        return self.ring.contents.encode(family.salt + metadata, place, family.key)

    def _hide_origin(self, origin: Origin) -> Origin:
        return Origin(self.hide(origin.thread, "thread"), origin.checkpoint)

    # --- the journal and the feed -----------------------------------------------------

    def hide_entry(self, entry: Entry, key: ContentKey) -> Entry:
        place = _place("journal", entry.checkpoint, entry.key)
        content = _tag(entry.thread) + entry.data
        return replace(
            entry,
            thread=self.hide(entry.thread, "thread"),
            key=self.hide(entry.key, "key"),
            data=self.ring.contents.encode(content, place, key),
        )

    def show_entry(self, entry: Entry) -> Entry:
        key = self.show(entry.key, "key")
        thread = self.show(entry.thread, "thread")
        what = f"the journal entry {key!r} of thread {thread!r}"
        place = _place("journal", entry.checkpoint, key)
        content = self.ring.contents.decode(entry.data, place, what)
        lost = self.lenient and thread == entry.thread
        if content[:THREAD_TAG] != _tag(thread) and not lost:
            raise Corrupt(what, "it belongs to another thread")
        return replace(entry, thread=thread, key=key, data=content[THREAD_TAG:])

    def hide_moves(self, moves: Iterable[Move]) -> tuple[Move, ...]:
        """All moves of families that come from another store."""
        made = self.proofs.chained(sorted(moves, key=lambda move: move.seq))
        return tuple([replace(m, thread=self.hide(m.thread, "thread")) for m in made])

    def named_move(self, move: Move) -> Move:
        """A move with the name of its thread; its kind is as it is stored."""
        return replace(move, thread=self.show(move.thread, "thread"))

    def show_move(self, move: Move) -> Move:
        """A move; that none before it is missing is checked elsewhere."""
        needed = self.ring.has_proofs and move.kind != SAVE
        return self.proofs.opened(self.named_move(move), needed=needed)[0]

    def show_moves(self, moves: Iterable[Move]) -> tuple[list[Move], list[str]]:
        """All moves of threads, oldest first: what is ours, and what is wrong."""
        shown: list[Move] = []
        ours: list[Move] = []
        problems: list[str] = []
        for move in moves:
            try:
                named = self.named_move(move)
                kept, _ = self.proofs.opened(named, needed=self.ring.has_proofs)
            except Corrupt as error:
                problems.append(str(error))
                continue
            ours.append(named)
            shown.append(kept)
        if self.ring.has_proofs:
            problems += self.proofs.gaps(ours)
        return shown, problems

    def show_change(self, change: Change) -> Change:
        subject = change.subject
        if change.kind == JOURNAL and subject is not None:
            subject = self.show(subject, "key")
        thread = self.show(change.thread, "thread")
        kind = divided(self.show_kind(change.kind))[0]
        return replace(change, thread=thread, kind=kind, subject=subject)

    # --- whatever a verb gives --------------------------------------------------------

    def show_stored(self, stored: Stored) -> Stored:
        thread, family = self.open_thread(stored.thread)
        segments = stored.segments
        if family is None:
            raise Corrupt(f"thread {thread.id!r}", DESTROYED_KEY)
        if segments is not None:
            segments = self.show_segments(segments, family)
        return Stored(thread, segments)

    def show_pieces(self, pieces: Pieces, family: Family) -> Pieces:
        return Pieces(tuple(self.show_segments(pieces.segments, family)))

    def show_kind_count(self, count: KindCount) -> KindCount:
        return replace(count, kind=self.show_kind(count.kind))

    def show_record(self, record: R) -> R:
        """Any record that `read` or `scan` gives, but pieces of an unknown family."""
        show = _SHOW.get(type(record))
        shown: R = show(self, record) if show else record
        return shown

    def show_all(self, records: Iterable[R]) -> tuple[R, ...]:
        return tuple([self.show_record(record) for record in records])


_SHOW: dict[type, Callable[[Records, Any], Any]] = {
    Checkpoint: Records.show_checkpoint,
    Entry: Records.show_entry,
    KindCount: Records.show_kind_count,
    Move: Records.show_move,
    Stored: Records.show_stored,
    ThreadRecord: Records.show_thread,
}


_encoder = msgspec.json.Encoder()


def _place(*parts: object) -> bytes:
    return _encoder.encode(parts)


# All that a segment says beside its bytes; they are numbers.
SEGMENT_NUMBERS = ("number", "packing", "count")
_pack = struct.Struct(f">{SALT}s{len(SEGMENT_NUMBERS)}q").pack


def _segment_place(segment: Segment, salt: bytes) -> bytes:
    return _pack(salt, segment.number, segment.packing, segment.count)


def _checkpoint_place(c: Checkpoint, kind: str | None = None) -> bytes:
    return _place(
        "checkpoint", c.id, c.step, c.saved_at, kind or c.kind, c.size, c.runs
    )


def _place_of(thread: ThreadRecord) -> bytes:
    return _thread_place(
        thread.id, thread.kind, thread.owner, thread.agent, thread.forked_from
    )


def _thread_place(
    name: str,
    kind: str,
    owner: str | None,
    agent: str | None,
    origin: Origin | None,
) -> bytes:
    return _place("thread", name, kind, owner, agent, origin)
