"""Proofs of moves: each shows that a move is the store's own, and in its place.

The backend has the proof behind the kind of a move: the id of the move, the id of the
move before it in the log of its thread, and an authentication code over both and all
that the move says. So a move cannot be changed, nor put into another thread or place,
and where one was taken out, the next names a move that is not there.

A move that the backend logs by itself for a removal has no proof: it moves no head.
"""

from __future__ import annotations

import hmac
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from holdfast._port import Write
from holdfast._values.records import Checkpoint, Move
from holdfast.errors import Corrupt

REMEMBERED = 4096
ID, CODE = 8, 16
# Stands for the move before the first one.
NOTHING: Final = bytes(ID)
OF_REMOVALS = frozenset({"prune", "delete"})
_PROOF = re.compile(r"~([A-Za-z0-9_-]{43})\Z")

_encoder = msgspec.json.Encoder()


class Proof(NamedTuple):
    """The id of a move, that of the move before it, and the code over all."""

    id: bytes
    before: bytes
    code: bytes

    def __str__(self) -> str:
        return "~" + urlsafe_b64encode(b"".join(self)).decode().rstrip("=")


def divided(stored: str) -> tuple[str, Proof | None]:
    """The kind of a move, and its proof, from what the backend has."""
    found = _PROOF.search(stored)
    if found is None:
        return stored, None
    data = urlsafe_b64decode(found[1] + "=")
    return stored[: found.start()], Proof(data[:ID], data[ID : 2 * ID], data[2 * ID :])


def logged(write: Write) -> Move | None:
    """The move that a write logs, without its number, if it logs one."""
    kind, target, start = "", None, write.start
    if write.checkpoint is not None:
        pass
    elif write.turn is not None:
        kind, target = write.turn.kind, write.turn.target
    elif write.marks:
        kind, target = "mark", write.marks[-1].checkpoint
    elif write.details is not None:
        kind = "describe"
    elif start is not None and start.head is not None:
        kind, target = "fork", start.head
    elif write.forget:
        kind = "forget"
    if not kind:
        return None
    source = write.expect.id if isinstance(write.expect, Checkpoint) else None
    to = target.id if target is not None else None
    return Move(0, write.thread, kind, source, to, write.at)


class MoveProofs:
    """Makes and checks the proofs of moves; the names of threads are decoded ones."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        # An undo reads those again that the one before has read.
        self.opened = lru_cache(REMEMBERED)(self._opened)

    def proof(self, move: Move, before: bytes, id_: bytes | None = None) -> Proof:
        """A proof for a move behind the one with an id; it keeps its own, if given."""
        id_ = id_ or os.urandom(ID)
        return Proof(id_, before, self._code(move, id_, before))

    def chained(self, moves: Iterable[Move]) -> list[Move]:
        """The moves of threads, oldest first, each with a proof behind its kind."""
        last: dict[str, bytes] = {}
        chained: list[Move] = []
        for move in moves:
            if move.kind not in OF_REMOVALS:
                proof = self.proof(move, last.get(move.thread, NOTHING))
                last[move.thread] = proof.id
                move = replace(move, kind=f"{move.kind}{proof}")  # noqa: PLW2901
            chained.append(move)
        return chained

    def _opened(self, move: Move, *, needed: bool = True) -> tuple[Move, Proof | None]:
        """A move and its proof; `Corrupt` if that is wrong, or missing and needed.

        Its thread is decoded, its kind as it is stored.
        """
        kind, proof = divided(move.kind)
        shown = replace(move, kind=kind)
        if proof is None:
            if needed and kind not in OF_REMOVALS:
                raise Corrupt(
                    _what(shown), "it has no proof that it is the store's own"
                )
            return shown, None
        code = self._code(shown, proof.id, proof.before)
        if not hmac.compare_digest(code, proof.code):
            raise Corrupt(_what(shown), "it was changed, or belongs elsewhere")
        return shown, proof

    def gaps(self, moves: Iterable[Move]) -> list[str]:
        """The places before which a move was taken out; ``moves`` are oldest first.

        Wrong proofs are passed over; `opened` tells them.
        """
        last: dict[str, bytes] = {}
        problems: list[str] = []
        for move in moves:
            kind, proof = divided(move.kind)
            if proof is None:
                continue
            if proof.before != last.get(move.thread, NOTHING):
                what = _what(replace(move, kind=kind))
                problems.append(f"a move before {what} was removed or put elsewhere")
            last[move.thread] = proof.id
        return problems

    def check_end(self, moves: Sequence[Move], *, is_whole: bool) -> None:
        """Check the last moves of a thread, newest first; `Corrupt` if one is missing.

        With ``is_whole`` they are all.
        """
        proofs = [(move, self.opened(move)[1]) for move in moves]
        older = [proof.id for _, proof in proofs[1:] if proof]
        if is_whole:
            older.append(NOTHING)
        for (move, proof), before in zip(proofs, older, strict=False):
            if proof and proof.before != before:
                what = _what(replace(move, kind=divided(move.kind)[0]))
                raise Corrupt(what, "a move before it was removed or put elsewhere")

    def _code(self, move: Move, id_: bytes, before: bytes) -> bytes:
        said = (move.thread, move.kind, move.source, move.target, move.moved_at)
        text = id_ + before + _encoder.encode(said)
        return hmac.digest(self._key, text, "sha256")[:CODE]


def _what(move: Move) -> str:
    return f"the move {move.kind!r} (number {move.seq}) of thread {move.thread!r}"
