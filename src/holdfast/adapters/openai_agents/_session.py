"""The session: the SDK's methods, and methods for history and paused runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from functools import wraps
from typing import Any, Self, Unpack, cast

from agents import Agent, FunctionTool, RunState, TResponseInputItem
from agents.memory import SessionSettings
from agents.run_context import RunContextWrapper

import holdfast
from holdfast import AsyncStore, Store
from holdfast.adapters.openai_agents import _changes, _effects
from holdfast.adapters.openai_agents._approvals import approved_in, with_unused
from holdfast.adapters.openai_agents._changes import ConversationKey, Items, checked
from holdfast.adapters.openai_agents._compaction import CompactionSnapshot, snapshot
from holdfast.adapters.openai_agents._effects import Undoing
from holdfast.adapters.openai_agents._once import OnceCalls, Progress, declared
from holdfast.adapters.openai_agents._paused_run import (
    COMPACTION,
    LoadRunOptions,
    ResumedRun,
    SaveRunOptions,
    SessionChange,
    dump_run,
    load_run,
)
from holdfast.adapters.openai_agents._runner import P, SessionRunner, T
from holdfast.adapters.openai_agents._transaction import PendingChanges
from holdfast.backends import UNSET, Checkpoint, Page
from holdfast.effects import Compensation, Effect, Key, Policy
from holdfast.effects import checked as checked_policy
from holdfast.errors import Conflict
from holdfast.operations import Context, OpenOptions, Operation
from holdfast.operations.stores import AnyStore, StoreOrAddress, given
from holdfast.operations.threads import HistoryQuery, Reference, lineage, moves, removal
from holdfast.operations.transcripts import Untouched
from holdfast.operations.values import HEAD, checked_name, encode_metadata

Wrapper = RunContextWrapper[Any]


class HoldfastSession:
    """A session for ``Runner.run(..., session=...)``.

    ``store`` is a `Store` or an `AsyncStore`, which any number of sessions can share,
    or an address, which is opened with the options of `holdfast.open`. The conversation
    with the same id is created with the first items; ``owner`` and ``agent`` are stored
    then. With an owner, the conversation of another owner raises `NotFound`.

    Every change is one checkpoint, saved as a whole or not at all. A caller that is
    cancelled during a change waits until it is saved or has failed; if it failed, that
    is the cause of the `CancelledError`. ``metadata`` is called with the context of the
    run, and its result becomes the metadata of the checkpoint. ``effects`` is the
    policy for a call of a `once` tool for an effect that was left behind.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        store: StoreOrAddress,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        owner: str | None = None,
        agent: str | None = None,
        metadata: Callable[[Wrapper], Mapping[str, object]] | None = None,
        effects: Policy | None = None,
        **options: Unpack[OpenOptions],
    ) -> None:
        self._conversation = ConversationKey(
            session_id,
            None if owner is None else checked_name(owner, "owner"),
            None if agent is None else checked_name(agent, "agent"),
        )
        self._thread = self._conversation.thread
        self.session_id = session_id
        self.session_settings = _settings(session_settings)
        self._metadata = metadata
        self._held: PendingChanges | None = None
        self._resumed: ResumedRun | None = None
        self._policy: Policy | None = checked_policy(effects)
        self._owned: Store | None = None
        if isinstance(store, Store | AsyncStore):
            store = given(store, options)
        else:
            store = self._owned = holdfast.open(store, **options)
        self._store: AnyStore = store
        self._runner = SessionRunner(store)
        self._calls = OnceCalls(self._runner, self._conversation, self._policy)

    def __repr__(self) -> str:
        return f"HoldfastSession({self.session_id!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End the session, and close the store if it was opened here.

        Later calls of its methods raise `SessionClosed`.
        """
        self._runner.close()
        if self._owned is not None:
            self._owned.close()

    # --- items ------------------------------------------------------------------------

    async def get_items(
        self, limit: int | None = None, *, wrapper: Wrapper | None = None
    ) -> list[TResponseInputItem]:
        """The last items, oldest first, exactly as they were added.

        Without a limit here and in the settings, all items; with one, only the end of
        the conversation is read.
        """
        del wrapper
        if limit is None:
            limit = _settings(self.session_settings).limit
        if self._held is not None:
            return _inputs(await self._held.items(limit, self._read))
        return _inputs(await self._read(limit))

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: Wrapper | None = None
    ) -> None:
        """Append items, all or none, durable when this returns.

        The cost depends on the new items only, not on the length of the conversation.
        Items that other sessions add at the same time are kept as well.
        """
        self._runner.be_open()
        kept = checked(items)
        if self._held is not None:
            self._held.added += kept
            self._held.metadata = self._about(wrapper) or self._held.metadata
        elif kept:
            await self._add(kept, wrapper)

    async def pop_item(
        self, *, wrapper: Wrapper | None = None
    ) -> TResponseInputItem | None:
        """Remove the last item and return it, ``None`` if there is none."""
        about = self._about(wrapper)
        if self._held is not None:
            popped = await self._held.pop(self._read)
        else:
            popped = await self._runner.save(_changes.pop, self._conversation, about)
        return cast("TResponseInputItem | None", popped)

    async def clear_session(self, *, wrapper: Wrapper | None = None) -> None:
        """Remove all items, and a paused run; `undo` brings them back.

        A session that was deleted is created again.
        """
        about = self._about(wrapper)
        if self._held is not None:
            self._held.clear()
            return
        await self._runner.save(_changes.clear, self._conversation, about)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Self]:
        """Save all changes inside the block in one checkpoint, at its end.

        Items that a run adds, and its state if it pauses, are then saved together or
        not at all. If the block raises, nothing is saved. `Conflict` if another session
        changed items that were popped or replaced inside.
        """
        self._be_alone()
        self._held = held = PendingChanges()
        try:
            yield self
        finally:
            self._held = None
        wanted = held.change(self._resumed)
        await self._calls.use_approvals(self._resumed, wanted.added)
        if not await self._try(wanted) and wanted.dropped:
            raise Conflict(
                f"session {self.session_id!r} was changed meanwhile; nothing of the"
                " transaction was saved: run it again",
                code="session_moved",
                thread=self._thread,
            )

    # --- history ----------------------------------------------------------------------

    async def history(
        self, limit: int | None = 100, *, before: Reference | int | None = None
    ) -> Page[Checkpoint]:
        """The checkpoints of the conversation, newest first."""
        query = HistoryQuery(limit=limit, before=before)
        return await self._runner.read(self._mine(lineage.history), self._thread, query)

    async def fork(
        self, new_id: str, *, at: Reference = HEAD, effects: Policy | None = None
    ) -> HoldfastSession:
        """A new session that shares the items up to a checkpoint.

        Nothing is copied. A run that is paused at that checkpoint is paused in both
        sessions. ``effects`` is the policy of the new session's `once` tools, also in
        its forks: ``"deny"`` makes none of their calls.
        """
        self._be_alone()
        old = self._conversation
        new = ConversationKey(new_id, old.owner, old.agent)
        policy = checked_policy(effects)
        await self._runner.save(_changes.fork, old, new, at, policy)
        return HoldfastSession(
            new_id,
            self._store,
            session_settings=self.session_settings,
            owner=new.owner,
            agent=new.agent,
            metadata=self._metadata,
            effects=self._policy,
        )

    async def rewind(self, ref: Reference) -> Checkpoint:
        """Go back to a checkpoint; later checkpoints stay in the history.

        A run that was paused at that checkpoint is paused again.
        """
        self._be_alone()
        return await self._runner.save(self._mine(moves.rewind), self._thread, ref)

    async def undo(self) -> Checkpoint:
        """Undo the last change or rewind; a second call undoes the one before."""
        self._be_alone()
        return await self._runner.save(self._mine(moves.undo), self._thread)

    async def delete(self) -> bool:
        """Delete the conversation with its history; False if there was none.

        Adding to it afterwards raises `Conflict`; `clear_session` creates it again.
        """
        self._be_alone()
        delete = self._mine(removal.delete)
        return await self._runner.change(delete, self._thread, None) > 0

    # --- paused runs ------------------------------------------------------------------

    async def save_run(
        self,
        state: RunState[Any, Any],
        *,
        items: Sequence[TResponseInputItem] = (),
        **options: Unpack[SaveRunOptions],
    ) -> None:
        """Save a paused run with the items of its session, in one checkpoint.

        ``items`` are added in the same checkpoint. The options are those of
        `RunState.to_json`: ``context_serializer``, ``strict_context``,
        ``include_tracing_api_key``. Adding an item that answers a call of the run
        removes the run, so that it cannot be resumed a second time.
        """
        run, added = dump_run(state, options), checked(items)
        if self._held is not None:
            self._held.run = run
            self._held.added += added
        else:
            await self._change(SessionChange(added=added, run=run, kind="pause"))

    async def load_run(
        self, agent: Agent[Any], **options: Unpack[LoadRunOptions]
    ) -> RunState[Any, Any] | None:
        """The paused run, ``None`` if there is none.

        ``agent`` is the one the run began with. The options are those of
        `RunState.from_json`: ``context_override``, ``context_deserializer``,
        ``strict_context``. Nothing that the stored run names is imported or called. The
        run holds approvals, so a program that can write to the store can approve calls.
        A used approval is not in it any more, except for a `once` tool, which refuses a
        second call. A run that this version of the SDK cannot read raises
        `FormatMismatch`. When two workers load a run and resume it, the second gets a
        `Conflict` from `add_items`.
        """
        held = self._held.run if self._held is not None else UNSET
        if held is UNSET:
            held = await self._runner.read(_changes.find_run, self._conversation)
        if held is None:
            return None
        held = await self._runner.read(with_unused, self._conversation, held)
        self._resumed = ResumedRun.of(held, approved_in(held["state"]))
        return await load_run(self.session_id, held, agent, options)

    async def clear_run(self) -> None:
        """Remove the paused run; does nothing if there is none."""
        if self._held is not None:
            self._held.run = None
        else:
            await self._try(SessionChange(run=None, kind="resume"))

    # --- effects ----------------------------------------------------------------------

    def once(
        self,
        tool: FunctionTool,
        *,
        key: Key | None = None,
        undo: Callable[[Effect], Any] | None = None,
        policy: Policy | None = None,
        again: bool = False,
    ) -> FunctionTool:
        """A copy of a tool whose calls happen once, also after a kill or a rewind.

        A call is recorded before it is made, and its result after. The same call in a
        resumed run, in any process, returns the recorded result. So does a call for the
        same effect after a rewind, a fork, `pop_item` or `clear_session`, also with
        another id: ``key``, ``undo`` and ``policy`` are those of `holdfast.once`, and
        are read from the tool's function if that is declared. A tool whose function is
        `holdfast.repeatable` is returned as it is.

        A call that began and did not end may have taken effect: the run fails, and the
        cause of its error is a `Conflict` with the code ``call_interrupted``. Check its
        effect, then `resolve` it or pass ``again=True`` to make it again. A call uses
        its approval up; the code ``approval_used`` says that an earlier call used it. A
        result that cannot be stored is recorded as its text.
        """
        found = declared(tool, key, undo, policy)
        if found.is_repeatable:
            return tool

        def current() -> Progress:
            return Progress(self._held, self._resumed)

        return self._calls.once(tool, found, current, again=again)

    async def effects(self, *, left_behind: bool = False) -> list[Effect]:
        """The calls of `once` tools in this session, oldest first.

        With ``left_behind`` the calls in force that the session and its forks made, but
        whose items they no longer have.
        """
        return await self._runner.read(
            _effects.effects, self._conversation, left_behind=left_behind
        )

    async def resolve(self, call: str, result: object) -> Any:
        """Record the result of a call without a recorded end, by the id of the call.

        The next call for the same effect gets this result, and is not made.
        """
        resolve = _effects.resolve
        return await self._runner.save(resolve, self._conversation, call, result)

    async def compensate(self) -> Compensation:
        """Undo the effects left behind, newest first, by the ``undo`` of their tools.

        Each undo is journaled before and after, so that a second `compensate` continues
        where the first one stopped. The tools are those that were passed to `once`.
        """
        undoing = Undoing(self._runner, self._calls.tools)
        return await undoing.compensate(self._conversation)

    # --- compaction -------------------------------------------------------------------

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Replace all items at once, for `OpenAIResponsesCompactionSession`."""
        if type(self) is not HoldfastSession:
            return False  # a subclass may change items in add_items: do not bypass it
        kept = checked(items)
        if self._held is not None:
            stored = await self._runner.read(_changes.present, self._conversation)
            await self._held.replace(kept, stored)
        else:
            await self._try(SessionChange(dropped=None, added=kept, kind=COMPACTION))
        return True

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[Any], bool] | None = None
    ) -> CompactionSnapshot | None:
        """The last items, which the result can replace if they are still the last."""
        if type(self) is not HoldfastSession or self._held is not None:
            return None
        return await snapshot(self._runner, self._conversation, limit, prune_prefix)

    # --- within -----------------------------------------------------------------------

    async def _read(self, limit: int | None) -> Items:
        return await self._runner.read(_changes.items, self._conversation, limit)

    def _mine(self, operation: Operation[P, T]) -> Operation[P, T]:
        """An operation that first checks the owner of the conversation."""

        @wraps(operation)
        async def admitted(context: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
            await _changes.admit(context, self._conversation)
            return await operation(context, *args, **kwargs)

        return admitted

    async def _add(self, items: Items, wrapper: Wrapper | None) -> None:
        turns, resumed = self._calls.turns, self._resumed
        turn = turns.find(items, wrapper.usage if wrapper else None)
        about, id_ = self._about(wrapper), turn.id if turn else None
        await self._calls.use_approvals(resumed, items)
        await self._change(
            SessionChange(added=items, metadata=about, resumes=resumed, id=id_)
        )
        turns.end(turn)

    async def _change(self, wanted: SessionChange) -> None:
        await self._runner.save(_changes.change, self._conversation, wanted)
        if self._resumed is not None and self._resumed.is_answered_by(wanted.added):
            self._resumed = None  # the run is not stored any more

    async def _try(self, wanted: SessionChange) -> bool:
        """Make a change; False if there was nothing to change."""
        try:
            await self._change(wanted)
        except Untouched:
            return False
        return True

    def _about(self, wrapper: Wrapper | None) -> bytes:
        if self._metadata is None or wrapper is None:
            return b""
        return encode_metadata(dict(self._metadata(wrapper)))

    def _be_alone(self) -> None:
        if self._held is not None:
            raise Conflict(
                f"a transaction of session {self.session_id!r} is open; end it first",
                code="in_transaction",
                thread=self._thread,
            )


def _settings(given: object) -> SessionSettings:
    """Settings as the SDK takes them; it refuses others with the same errors."""
    if isinstance(given, SessionSettings):
        return given
    if given is not None and not isinstance(given, dict):
        kind = type(given).__name__
        raise TypeError(f"session must be SessionSettings or a dict, got {kind}")
    named = cast("dict[str, Any]", given or {})
    unknown = named.keys() - {field.name for field in fields(SessionSettings)}
    if unknown:
        names = ", ".join(sorted(map(str, unknown)))
        raise TypeError(f"Unknown session settings: {names}")
    return SessionSettings(**named)


def _inputs(items: Items) -> list[TResponseInputItem]:
    # The SDK's types are TypedDicts, which are not checked at run time.
    return cast("list[TResponseInputItem]", items)
