"""The request for an erasure, the setting that notes it, and its receipt."""

from __future__ import annotations

import hmac
import os
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict, replace

from holdfast._engine.context import Context
from holdfast._values.caller_key import not_encrypted
from holdfast._values.records import checked_stored_name
from holdfast._values.typed import prepare
from holdfast.errors import Corrupt, Unstorable

# The setting with what is being erased. Opening a store looks for it.
INTENT = "erasure"
SALT = 16
SELECTORS = ("owner", "thread", "agent")


class ErasureRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to erase all of an owner, all of an agent, or one thread.

    With ``forks`` also the threads of others that share history with it.
    """

    owner: str | None = None
    thread: str | None = None
    agent: str | None = None
    forks: bool = False

    def __post_init__(self) -> None:
        given = [name for name in SELECTORS if getattr(self, name) is not None]
        if len(given) != 1:
            text = "needs one of owner, thread and agent, and only one"
            raise Unstorable("erase", text)
        checked_stored_name(getattr(self, given[0]), given[0])

    @property
    def selector(self) -> str:
        """The field that was given, of the three."""
        return next(name for name in SELECTORS if getattr(self, name) is not None)

    @property
    def subject(self) -> str:
        """The name that was given."""
        found: str = getattr(self, self.selector)
        return found


class Counts(msgspec.Struct, frozen=True):
    """Counts of the records that were erased, and their bytes."""

    threads: int = 0
    checkpoints: int = 0
    entries: int = 0
    bytes: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.threads + other.threads,
            self.checkpoints + other.checkpoints,
            self.entries + other.entries,
            self.bytes + other.bytes,
        )


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt of an erasure: what, how much, when.

    ``selector`` is "owner", "thread" or "agent", ``subject`` the name. `to_json` has
    only a salted digest of the name, so that the receipt can be kept; `is_about`
    compares a name with it. ``heads`` is a digest of the last states that were erased.
    ``before`` and ``after`` are the numbers of the store's last change. ``backups`` is
    "unreadable" if a secret was destroyed without which the contents of this owner can
    be read in no earlier copy of the store, else "readable". An encrypted store signs
    the receipt.
    """

    selector: str
    subject: str
    salt: str
    digest: str
    threads: int
    checkpoints: int
    entries: int
    bytes: int
    heads: str
    before: int
    after: int
    erased_at: int
    backups: Literal["readable", "unreadable"] = "readable"
    dry_run: bool = False
    signature: str | None = None

    def is_about(self, subject: str) -> bool:
        """True if this is the receipt for a name."""
        return _digest(self.salt, self.selector, subject) == self.digest

    def to_json(self) -> str:
        """The receipt without the name, to be kept."""
        return msgspec.json.encode(_kept(self)).decode()

    @classmethod
    def from_json(cls, text: str) -> Erasure:
        """The inverse of `to_json`; ``subject`` is empty."""
        try:
            return msgspec.convert({"subject": ""} | msgspec.json.decode(text), cls)
        except (ValueError, TypeError, RecursionError) as error:
            raise Unstorable("receipt", f"is none: {error}") from error


async def has_intent(context: Context) -> bool:
    """True if an erasure was ever begun in the store."""
    try:
        return bool(await context.backend.setting(INTENT))
    except Corrupt:  # it must not keep the store closed; `verify` reports it
        return False


def new_receipt(request: ErasureRequest, **fields: Any) -> Erasure:
    """A receipt that is not signed yet."""
    salt = os.urandom(SALT).hex()
    return Erasure(
        selector=request.selector,
        subject=request.subject,
        salt=salt,
        digest=_digest(salt, request.selector, request.subject),
        **fields,
    )


def signed(context: Context, receipt: Erasure) -> Erasure:
    """A receipt with the signature of an encrypted store; else as it is."""
    if context.keys is None:
        return receipt
    return replace(receipt, signature=_signature(context.keys.seal_key, receipt))


async def verify_receipt(context: Context, receipt: Erasure | str) -> bool:
    """True if this store has signed a receipt, and nothing of it was changed."""
    if context.keys is None:
        raise not_encrypted()
    given = receipt if isinstance(receipt, Erasure) else Erasure.from_json(receipt)
    expected = _signature(context.keys.seal_key, given)
    return hmac.compare_digest(expected, given.signature or "")


def _signature(key: bytes, receipt: Erasure) -> str:
    said = _kept(receipt)
    del said["signature"]
    return hmac.digest(key, b"erasure\n" + msgspec.json.encode(said), "sha256").hex()


def _kept(receipt: Erasure) -> dict[str, Any]:
    """The fields of a receipt that say nothing about a person."""
    kept = asdict(receipt)
    del kept["subject"]
    return kept


def _digest(salt: str, selector: str, subject: str) -> str:
    text = msgspec.json.encode([salt, selector, subject])
    return sha256(text).hexdigest()


prepare(Erasure)
