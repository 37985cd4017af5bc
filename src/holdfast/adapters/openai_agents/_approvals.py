"""Approvals are grants: each allows one call once, also after a rewind or a fork."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from holdfast.adapters.openai_agents._changes import (
    ConversationKey,
    StoredItems,
    present,
)
from holdfast.backends import FamilyEntries
from holdfast.errors import Conflict
from holdfast.operations import Context
from holdfast.operations.effects import ledger
from holdfast.operations.threads import grants, journal_keys
from holdfast.operations.transcripts import fields_of, key_of, parts_of

USED = "approval_used"
_LONGEST_ID = 300


def grant_of(run: str, call: str) -> str:
    """The name of the grant for a call that a paused run waits for."""
    is_plain = call.isascii() and call.isprintable()
    if not is_plain or len(call) > _LONGEST_ID:
        call = sha256(call.encode(errors="surrogatepass")).hexdigest()
    return f"approval:{run}:{call}"


async def consume(context: Context, key: ConversationKey, grant: str) -> bool:
    """Use an approval up; False if it was used before, here or on a fork."""
    return await grants.consume(context, key.thread, key.start, grant)


async def is_consumed(context: Context, family: int, grant: str) -> bool:
    """True if an approval was used."""
    query = FamilyEntries(family=family, prefix=journal_keys.GRANT + grant)
    found = await context.backend.scan(query)
    return any(entry.key == journal_keys.GRANT + grant for entry in found)


async def is_journaled(context: Context, family: int, key: str) -> bool:
    """True if a tool that is ``once`` made a call; its journal refuses a second."""
    wanted = ledger.begin_key(key, 1)
    found = await context.backend.scan(FamilyEntries(family=family, prefix=wanted))
    return any(entry.key == wanted for entry in found)


async def with_unused(
    context: Context, key: ConversationKey, run: Mapping[str, Any]
) -> Mapping[str, Any]:
    """A stored run with the approvals that no call has used.

    A call of a tool that is ``once`` keeps its approval: the tool checks its use.
    """
    approved = approved_in(run["state"]) & set(run.get("asked", run["calls"]))
    found = await present(context, key) if approved else StoredItems()
    if found.thread is None:
        return run
    family, used = found.thread.family, set[str]()
    for call in approved:
        made = key_of(found.items, call, found.summary, is_made=True)
        if await is_consumed(context, family, grant_of(run["id"], call)):
            used |= set() if await is_journaled(context, family, made) else {call}
    return {**run, "state": without_approvals(run["state"], used)} if used else run


def used_before(key: ConversationKey, call: str, tool: str) -> Conflict:
    """The error of a call whose approval was used up by an earlier one."""
    return Conflict(
        f"the approval of call {call!r} was used already: {tool!r} was called with it"
        " before the session was rewound, forked or restored, or by another worker."
        " Reject the call, so that the model asks again and the new call can be"
        " approved; or use session.once(tool, again=True) to make it once more",
        code=USED,
        thread=key.thread,
    )


# --- approvals in the JSON of the SDK -------------------------------------------------


def approved_in(snapshot: object) -> set[str]:
    """The ids of the calls that a stored run has approvals of."""
    return {id_ for ids in _approvals(snapshot) for id_ in ids if isinstance(id_, str)}


def without_approvals(snapshot: object, ids: set[str]) -> object:
    """A stored run in which some calls are not approved."""
    if parts := parts_of(snapshot):
        return [without_approvals(part, ids) for part in parts]
    if fields := fields_of(snapshot):
        return {name: _stripped(name, part, ids) for name, part in fields.items()}
    return snapshot


def _stripped(name: str, part: object, ids: set[str]) -> object:
    if name == "approved" and parts_of(part):
        return [id_ for id_ in parts_of(part) if id_ not in ids]
    return without_approvals(part, ids)


def _approvals(value: object) -> Iterator[list[object]]:
    for name, part in fields_of(value).items():
        if name == "approved":
            yield parts_of(part)
        yield from _approvals(part)
    for part in parts_of(value):
        yield from _approvals(part)
