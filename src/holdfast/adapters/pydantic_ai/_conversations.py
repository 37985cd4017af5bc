"""The store of conversations: the primitives that the framework builds on."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self, TypeVar, Unpack

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_core import to_json

from holdfast.adapters.pydantic_ai._entries import (
    INDEX,
    MESSAGES,
    Entries,
    EntryIndex,
    Found,
    Place,
    index_rows,
)
from holdfast.adapters.pydantic_ai._names import (
    CONVERSATION,
    escaped,
    id_of,
    thread_name,
)
from holdfast.backends import Checkpoint, ThreadRecord
from holdfast.errors import Conflict, FormatMismatch, NotFound
from holdfast.operations import Context, OpenOptions
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled
from holdfast.operations.threads import find_record, read_listed, read_values_of
from holdfast.operations.values import uuid7

T = TypeVar("T")

_RECORD: Final = TypeAdapter(ConversationRecord)
_ENTRIES: Final = TypeAdapter(list[ConversationEntry])
_ID: Final = "conversation_id"
_FIELDS: Final = [f.name for f in dataclasses.fields(ConversationRecord)]
# The values of a thread's state beside its messages; its name has the id.
_VALUES: Final = [name for name in _FIELDS if name != _ID]
# Retention keeps tagged checkpoints, and so the branches that a conversation left.
LEFT: Final = "branch"


class StoredRecord(NamedTuple):
    """A record as stored at the head of a thread."""

    thread: str
    head: Checkpoint
    owner: str | None
    values: dict[str, Any]


class HoldfastConversationStore(ConversationStore):
    """Conversations of Pydantic AI in a Holdfast store.

    ``store`` is a `Store`, an `AsyncStore`, or an address, which is opened with the
    options of `holdfast.open` and closed by `close` or ``async with``. A save is one
    transaction. A caller that is cancelled during a change waits until it is made.

    A conversation is a thread whose list ``messages`` has its entries; a fork shares
    them. `delete` deletes the entries that belong to no other conversation.
    """

    def __init__(self, store: StoreOrAddress, **options: Unpack[OpenOptions]) -> None:
        self._used = UsedStore(store, **options)
        self._store = self._used.awaited
        self._index = EntryIndex(self._store)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store, if it was opened here."""
        await self._used.close()

    # --- reading ----------------------------------------------------------------------

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation, ``None`` if there is none."""
        found = await self._find(conversation_id)
        return _record(found) if found else None

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """The records of all scopes or of one, last saved first."""
        if limit == 0:
            return []
        page = await self._store.threads(
            kind=CONVERSATION, owner=_owner(scope), limit=limit
        )
        found = await self._store.runner.run(_read_all, page)
        records = [_record(one) for one in found]
        return sorted(records, key=lambda record: record.updated_at, reverse=True)

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """The entries up to and including one, in order, or only the last of them."""
        if head_id is None or limit == 0:
            return []
        return _decoded(_ENTRIES, await self._index.history(head_id, limit))

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry with this id; `LookupError` if there is none."""
        return _decoded(_ENTRIES, await self._index.history(entry_id, 1))[0]

    # --- writing ----------------------------------------------------------------------

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record with its new entries, all or nothing.

        Raises `ConversationConflict` as the framework asks for.
        """
        _check_chain(record, new_entries)
        found = await self._expected(record.conversation_id, expected_revision)
        try:
            await settled(self._write(record, new_entries, found))
        except (Conflict, LookupError) as error:
            raise ConversationConflict(record.conversation_id) from error

    async def delete_record(
        self, conversation_id: str, *, expected_revision: str
    ) -> None:
        """Delete a conversation, with the entries that belong to no other one."""
        found = await self._expected(conversation_id, expected_revision)
        if found is None:
            raise ConversationConflict(conversation_id)
        try:
            await settled(self._delete(found))
        except Conflict as conflict:
            raise ConversationConflict(conversation_id) from conflict

    async def _expected(self, id_: str, revision: str | None) -> StoredRecord | None:
        found = await self._find(id_)
        if (found.values.get("revision") if found else None) != revision:
            raise ConversationConflict(id_)
        return found

    async def _find(self, id_: str) -> StoredRecord | None:
        return await self._store.runner.run(_read_one, thread_name(CONVERSATION, id_))

    async def _write(
        self,
        record: ConversationRecord,
        new: Sequence[ConversationEntry],
        found: StoredRecord | None,
    ) -> None:
        """Save at the end of the conversation, at an earlier entry, or as a fork."""
        before = new[0].parent_id if new else record.head_id
        change = _Change(record, new)
        if before == (found.values.get("head_id") if found else None):
            await self._commit(change, found.head if found else None, kept=None)
        elif found is not None:
            kept = (await self._index.find(before)).entries if before else ()
            await self._keep_branch(record, found)
            await self._commit(change, found.head, kept=kept)
        else:
            assert before is not None
            await self._fork(change, await self._index.find(before))
        if found is not None:
            await self._own(change, found.owner)

    async def _fork(self, change: _Change, source: Found) -> None:
        """Begin a conversation with the entries of another one; the two share them."""
        try:
            thread = await self._store.thread(source.place.thread).fork(
                change.thread, at=source.place.checkpoint
            )
        except NotFound:  # only another fork of it is left
            await self._commit(change, None, kept=source.entries)
            return
        kept = None if source.is_end else source.entries
        forked = await thread.about
        if forked is None:
            raise LookupError(change.thread)  # another writer has deleted it again
        await self._commit(change, forked.head, kept=kept)
        await self._own(change, forked.owner)

    async def _own(self, change: _Change, owner: str | None) -> None:
        """Set the owner of a thread to the scope of its conversation, if different."""
        if owner != change.owner:
            await self._store.thread(change.thread).describe(owner=change.owner)

    async def _keep_branch(
        self, record: ConversationRecord, found: StoredRecord
    ) -> None:
        """Mark the end of a history that the conversation is about to leave."""
        if found.values.get("head_id") in record.branches:
            await self._store.thread(found.thread).tag(LEFT, ref=found.head)

    async def _commit(
        self, change: _Change, head: Checkpoint | None, *, kept: Entries | None
    ) -> None:
        """Save the record on a head, with all entries if ``kept`` are those before."""
        id_ = uuid7()
        async with self._store.transaction() as tx:
            thread = tx.thread(change.thread, kind=CONVERSATION, owner=change.owner)
            if kept is None:
                thread.amend(
                    lists={MESSAGES: change.entries} if change.entries else None,
                    values=change.values,
                    remove=change.unset,
                    expect=head,
                    id=id_,
                )
            else:
                state = {MESSAGES: [*kept, *change.entries], **change.values}
                thread.save(state, expect=head, id=id_)
            rows = index_rows(change.ids, Place(change.thread, id_))
            if rows:
                tx.thread(INDEX).record_all(rows)

    async def _delete(self, found: StoredRecord) -> None:
        ids = await self._ids(found)
        await self._store.thread(found.thread).delete(expect=found.head)
        await self._index.forget(ids)

    async def _ids(self, found: StoredRecord) -> set[str]:
        """The ids of the entries of a conversation, and of the branches it left."""
        ids: set[str] = set()
        for tip in (found.values.get("head_id"), *found.values.get("branches", ())):
            try:
                entries = await self._index.history(tip, None) if tip else ()
            except LookupError:
                continue
            ids.update(entry["id"] for entry in entries)
        return ids


class _Change:
    """A record and its new entries in their stored form."""

    def __init__(
        self, record: ConversationRecord, new: Sequence[ConversationEntry]
    ) -> None:
        self.thread = thread_name(CONVERSATION, record.conversation_id)
        self.owner = _owner(record.scope)
        values = _RECORD.dump_python(
            record, mode="json", exclude={_ID}, exclude_defaults=True
        )
        self.values: dict[str, Any] = values
        self.unset = [name for name in _VALUES if name not in self.values]
        dumped: Entries = _ENTRIES.dump_python(list(new), mode="json")
        # The message first: a view that cuts an element short then shows the message.
        self.entries = [{"message": entry["message"], **entry} for entry in dumped]
        # The head is indexed again if it is older: retention may remove the checkpoint
        # that added it.
        head = [record.head_id] if record.head_id is not None else []
        self.ids = [entry.id for entry in new] or head


def _check_chain(
    record: ConversationRecord, new_entries: Sequence[ConversationEntry]
) -> None:
    """Refuse new entries that are not the end of the history of the record."""
    ids = [entry.id for entry in new_entries]
    parents = [entry.parent_id for entry in new_entries[1:]]
    if ids and (ids[:-1] != parents or ids[-1] != record.head_id):
        raise UserError(
            "`new_entries` must be the end of the history of the record: each entry"
            " after its parent, and the last one its `head_id`."
        )


def _owner(scope: str | None) -> str | None:
    return None if scope is None else escaped(scope)


def _record(found: StoredRecord) -> ConversationRecord:
    # The name decides: a fork made by another means is a conversation too.
    return _decoded(_RECORD, {**found.values, _ID: id_of(found.thread)})


def _decoded(adapter: TypeAdapter[T], stored: object) -> T:
    try:
        # From JSON, because only then bytes are decoded from text.
        return adapter.validate_json(to_json(stored, inf_nan_mode="constants"))
    except ValidationError as error:
        raise FormatMismatch(
            "a conversation is stored in a form that this version of Pydantic AI does"
            f" not read; use the version that saved it: {error}"
        ) from error


# --- operations -----------------------------------------------------------------------


async def _read_one(context: Context, thread: str) -> StoredRecord | None:
    record = await find_record(context, thread)
    return await read_listed(context, record, _read) if record else None


async def _read_all(
    context: Context, records: Sequence[ThreadRecord]
) -> list[StoredRecord]:
    found = [await read_listed(context, record, _read) for record in records]
    return [one for one in found if one is not None]


async def _read(context: Context, record: ThreadRecord) -> StoredRecord:
    assert record.head is not None
    values = await read_values_of(context, record.head, *_VALUES)
    return StoredRecord(record.id, record.head, record.owner, values)
