"""A seal: the content of a store at a moment, in a text that is kept elsewhere.

An older copy of the store that was put back is whole in itself. Only a text outside of
the store can tell that it is older.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections import deque
from hashlib import sha256

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.upkeep.family_records import FamilyReader
from holdfast._port import Adoption
from holdfast._values.records import Checkpoint, Entry, Move, ThreadRecord
from holdfast._values.typed import prepare
from holdfast.errors import Corrupt, Unstorable

PREFIX = "holdfast-seal-2:"
# The prefix of seals that were made before seals had moves.
FIRST_PREFIX = "holdfast-seal-1:"
DIGEST, MARK = 16, 8
# The move that says that a thread has lost checkpoints.
PRUNE = "prune"


class SealedFamily(msgspec.Struct, frozen=True, array_like=True):
    """A thread and its forks as they were: all of it, the heads and the last moves.

    While ``changed`` stays the same, so must the digest. After a change the heads must
    still be there, as checkpoints of the family, and in each log the last move.
    """

    family: int
    changed: int
    digest: bytes
    heads: tuple[bytes, ...]
    moves: tuple[bytes, ...] = ()


class _Digest:
    """The digest of one family while its records are read."""

    def __init__(self, key: bytes) -> None:
        self._hash = hmac.new(key, digestmod="sha256")
        self._key = key
        self.changed = 0
        self.names: list[str] = []
        self.heads: list[bytes] = []
        self.saved: set[bytes] = set()
        self.moved: set[bytes] = set()
        self._last_moves: dict[str, bytes] = {}

    def add_thread(self, t: ThreadRecord) -> None:
        self.changed = max(self.changed, t.changed)
        self.names.append(t.id)
        if t.head is not None:
            self.heads.append(self.mark(t.head))
        about = (t.kind, t.owner, t.agent, t.encoded_metadata, t.forked_from)
        self._add("thread", t.id, t.head and t.head.id, *about)

    def add_checkpoint(self, c: Checkpoint) -> None:
        self.saved.add(self.mark(c))
        self._add("checkpoint", c.id, c.thread, c.parent, c.label, c.tags, c.sha256)

    def add_entry(self, e: Entry) -> None:
        self._add("journal", e.thread, e.checkpoint, e.key, sha256(e.data).digest())

    def add_move(self, m: Move, after: str | None) -> None:
        """Add a move; ``after`` is the last checkpoint of its thread before it."""
        said = (m.thread, m.kind, m.source, m.target, m.moved_at)
        self._add("move", *said, after)
        if m.kind != PRUNE:  # it has no proof, so it could be written without the key
            mark = hmac.digest(self._key, msgspec.json.encode(said), "sha256")[:MARK]
            self.moved.add(mark)
            self._last_moves[m.thread] = mark

    def mark(self, c: Checkpoint) -> bytes:
        text = c.id.encode() + c.sha256
        return hmac.digest(self._key, text, "sha256")[:MARK]

    def sealed(self, family: int) -> SealedFamily:
        digest = self._hash.digest()[:DIGEST]
        heads, moves = sorted(self.heads), sorted(self._last_moves.values())
        return SealedFamily(family, self.changed, digest, tuple(heads), tuple(moves))

    def _add(self, *said: object) -> None:
        self._hash.update(msgspec.json.encode(said) + b"\n")


async def seal(context: Context) -> str:
    """A seal of the whole store, as a text to keep elsewhere."""
    found = await _digests(context)
    families = [digest.sealed(family) for family, digest in sorted(found.items())]
    content = msgspec.msgpack.encode(families)
    return PREFIX + b64encode(_mac(context, content) + content).decode()


async def broken(context: Context, text: str) -> list[str]:
    """The contents that a seal knows and the store has lost or changed."""
    families = _opened(context, text)
    found = await _digests(context, with_moves=text.startswith(PREFIX))
    problems: list[str] = []
    for sealed in families:
        digest = found.get(sealed.family)
        if digest is None:
            problems.append(f"family {sealed.family} was sealed and is gone")
            continue
        why = _why(sealed, digest)
        if why:
            problems.append(f"thread {digest.names[0]!r} {why}")
    return problems


async def check_seal(context: Context, text: str) -> None:
    """Raise `Corrupt` if the store has lost or changed content that a seal knows."""
    problems = await broken(context, text)
    if problems:
        raise Corrupt("the store", problems[0])


def _why(sealed: SealedFamily, digest: _Digest) -> str | None:
    if digest.changed < sealed.changed:
        return "is older than the seal: it was put back"
    if digest.changed == sealed.changed:
        same = digest.sealed(sealed.family) == sealed
        return None if same else "is not as it was sealed, and no change says why"
    if not digest.moved.issuperset(sealed.moves):
        return "no longer has a move that was sealed: it was taken out, or pruned"
    if digest.saved.issuperset(sealed.heads):
        return None
    return "no longer has a state that was sealed: it was put back, or pruned"


async def _digests(context: Context, *, with_moves: bool = True) -> dict[int, _Digest]:
    """The digests of all families with a thread that is not deleted."""
    found: dict[int, _Digest] = {}
    inspection = await context.backend.inspect()
    try:
        reader = FamilyReader(context, inspection)
        await reader.find()
        for batch in reader.batches():
            for family in await reader.read(batch):
                digest = _digest_of(family, _key(context))
                if with_moves:
                    _add_moves(digest, family)
                if digest.names:
                    found[family.family] = digest
    finally:
        await inspection.close()
    return found


def _digest_of(family: Adoption, key: bytes) -> _Digest:
    digest = _Digest(key)
    for thread in family.threads:
        if thread.deleted_at is None:
            digest.add_thread(thread)
    for checkpoint in family.checkpoints:
        digest.add_checkpoint(checkpoint)
    for entry in family.entries:
        digest.add_entry(entry)
    return digest


def _add_moves(digest: _Digest, family: Adoption) -> None:
    """The moves of a family in their order, also among the saves."""
    saved: dict[str, str] = {}
    checkpoints = deque(family.checkpoints)
    for move in family.moves:
        while checkpoints and checkpoints[0].seq < move.seq:
            checkpoint = checkpoints.popleft()
            saved[checkpoint.thread] = checkpoint.id
        digest.add_move(move, saved.get(move.thread))


def _opened(context: Context, text: str) -> list[SealedFamily]:
    try:
        prefix = next((p for p in (PREFIX, FIRST_PREFIX) if text.startswith(p)), "")
        content = b64decode(text.strip().removeprefix(prefix), validate=True)
        mac, content = content[:DIGEST], content[DIGEST:]
        expected = _mac(context, content, prefix)
        if prefix and hmac.compare_digest(mac, expected):
            return msgspec.msgpack.decode(content, type=list[SealedFamily])
    except (ValueError, TypeError, AttributeError, msgspec.DecodeError):
        pass
    raise Unstorable("seal", "is no seal of this store, or not all of one")


def _mac(context: Context, content: bytes, prefix: str = PREFIX) -> bytes:
    # The first form has no prefix in its digest; it must not pass for the second.
    form = b"" if prefix == FIRST_PREFIX else prefix.encode()
    return hmac.digest(_key(context), form + b"seal\n" + content, "sha256")[:DIGEST]


def _key(context: Context) -> bytes:
    # Without keys a seal still tells if an older copy was put back, but every program
    # that can read the store can make another seal for it.
    return context.keys.seal_key if context.keys else b""


prepare(SealedFamily)
