"""The keys under which the engine keeps records of its own in the journal of a thread.

Callers cannot record or forget under them: what stands there decides what is paid.
"""

from __future__ import annotations

from typing import Final

from holdfast._values.records import checked_name
from holdfast.errors import Unstorable

# What was called, undone and used up, and the index by what a call means.
CALL: Final = "call:"
UNDO: Final = "undo:"
EFFECT: Final = "effect:"
GRANT: Final = "grant:"
# Which checkpoints have the calls of removed ones, and which a line has merged.
ANCHOR: Final = "anchor:"
MERGED: Final = "merged:"
# What a recorder got since the last checkpoint.
PENDING: Final = "pending:"

RESERVED: Final = (CALL, UNDO, EFFECT, GRANT, ANCHOR, MERGED, PENDING)


def callers_key(key: object) -> str:
    """The key of an entry that a caller records or forgets."""
    name = checked_name(key, "journal key")
    if name.startswith(RESERVED):
        text = (
            f"{name!r} begins with one of {', '.join(RESERVED)}, under which Holdfast"
            " keeps what was called and consumed; choose another key"
        )
        raise Unstorable("journal key", text)
    return name
