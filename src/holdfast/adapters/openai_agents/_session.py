"""The session: the SDK's methods, and those of a conversation with a history."""

from __future__ import annotations

import asyncio
import os
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Concatenate, Self, Unpack, cast

from agents import Agent, FunctionTool, RunState, TResponseInputItem
from agents.memory import SessionSettings
from agents.run_context import RunContextWrapper

import holdfast
from holdfast._api.options import OpenOptions
from holdfast._api.store import AsyncStore, Store
from holdfast._engine.context import Context
from holdfast._engine.records.transcript_tail import Untouched
from holdfast._engine.threads import lineage, moves, removal
from holdfast._engine.threads.lineage import HistoryQuery, Reference
from holdfast._values.records import (
    UNSET,
    Checkpoint,
    Page,
    checked_name,
    encode_metadata,
)
from holdfast._values.reference import HEAD
from holdfast.adapters.openai_agents import _changes, _run_state
from holdfast.adapters.openai_agents._changes import Items, Place, checked
from holdfast.adapters.openai_agents._compaction import Snapshot, snapshot
from holdfast.adapters.openai_agents._once import Now, once
from holdfast.adapters.openai_agents._paused import Change, Resumed
from holdfast.adapters.openai_agents._run_state import LoadOptions, SaveOptions
from holdfast.adapters.openai_agents._runner import AnyStore, P, Runner, T
from holdfast.adapters.openai_agents._transaction import Held
from holdfast.errors import Closed, Conflict

Wrapper = RunContextWrapper[Any]


class HoldfastSession:
    """A session for ``Runner.run(..., session=...)``.

    Opened over a store, blocking or awaited, which any number of sessions share, or
    from an address with the options of `holdfast.open`. The conversation with the same
    id begins with the first items; ``owner`` and ``agent`` are whose it is then, and
    with an owner another user's is not found.

    Every change is one checkpoint, saved as a whole or not at all; who is cancelled
    waits for it and is told by the error's cause if it failed. ``metadata`` is called
    with the context of the run, and what it gives is kept with the checkpoint.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        store: str | os.PathLike[str] | AnyStore,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        owner: str | None = None,
        agent: str | None = None,
        metadata: Callable[[Wrapper], Mapping[str, object]] | None = None,
        **options: Unpack[OpenOptions],
    ) -> None:
        self._place = Place(
            session_id,
            None if owner is None else checked_name(owner, "owner"),
            None if agent is None else checked_name(agent, "agent"),
        )
        self._thread = self._place.thread
        self.session_id = session_id
        self.session_settings = _settings(session_settings)
        self._metadata = metadata
        self._held: Held | None = None
        self._resumed: Resumed | None = None
        self._owned: Store | None = None
        self._is_closed = False
        if not isinstance(store, Store | AsyncStore):
            store = self._owned = holdfast.open(store, **options)
        self._store: AnyStore = store
        self._runner = Runner(store)

    def __repr__(self) -> str:
        return f"HoldfastSession({self.session_id!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End the session, and close the store if it was opened here."""
        self._is_closed = True
        if self._owned is not None:
            self._owned.close()

    # --- items ------------------------------------------------------------------------

    async def get_items(
        self, limit: int | None = None, *, wrapper: Wrapper | None = None
    ) -> list[TResponseInputItem]:
        """The last items, in their order and exactly as they were added.

        Without a limit, here and in the settings, all of them; with one, only the end
        of the conversation is read.
        """
        del wrapper
        settings = self.session_settings
        if limit is None and settings is not None:
            limit = settings.limit
        if self._held is not None:
            return _inputs(await self._held.items(limit, self._read))
        return _inputs(await self._read(limit))

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: Wrapper | None = None
    ) -> None:
        """Append items, all or none, durable when this returns.

        Costs what they take, however long the conversation is. What others add at the
        same time is kept as well.
        """
        self._be_open()
        kept = checked(items)
        if self._held is not None:
            self._held.added += kept
            self._held.metadata = self._about(wrapper) or self._held.metadata
        elif kept:
            about, resumed = self._about(wrapper), self._resumed
            await self._change(Change(added=kept, metadata=about, resumes=resumed))

    async def pop_item(
        self, *, wrapper: Wrapper | None = None
    ) -> TResponseInputItem | None:
        """Take the last item away and give it, ``None`` if there is none."""
        about = self._about(wrapper)
        if self._held is not None:
            popped = await self._held.pop(self._read)
        else:
            popped = await self._runner.save(_changes.pop, self._place, about)
        return cast("TResponseInputItem | None", popped)

    async def clear_session(self, *, wrapper: Wrapper | None = None) -> None:
        """Take all items away, and a paused run; `undo` brings them back.

        A session that was deleted begins anew.
        """
        about = self._about(wrapper)
        if self._held is not None:
            self._held.clear()
            return
        await self._runner.save(_changes.clear, self._place, about)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Self]:
        """Save what the session is told inside in one checkpoint, at the end of it.

        Items that a run adds and the run's state, if it pauses, are then kept together
        or not at all. When the block raises, nothing of it is saved. `Conflict` if
        somebody else changed what was popped or replaced inside.
        """
        self._be_alone()
        self._held = held = Held()
        try:
            yield self
        finally:
            self._held = None
        wanted = held.change(self._resumed)
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
        """The checkpoints of the conversation, newest first; none if there is none."""
        query = HistoryQuery(limit=limit, before=before)
        return await self._runner.read(self._mine(lineage.history), self._thread, query)

    async def fork(self, new_id: str, *, at: Reference = HEAD) -> HoldfastSession:
        """A new session that shares what was said up to a checkpoint.

        Nothing is copied. A run that was paused there is paused in both.
        """
        self._be_alone()
        new = Place(new_id, self._place.owner, self._place.agent)
        await self._runner.save(_changes.fork, self._place, new, at)
        return HoldfastSession(
            new_id,
            self._store,
            session_settings=self.session_settings,
            owner=new.owner,
            agent=new.agent,
            metadata=self._metadata,
        )

    async def rewind(self, ref: Reference) -> Checkpoint:
        """Go back to a checkpoint; what came after it stays in the history.

        A run that was paused there is paused again.
        """
        self._be_alone()
        return await self._runner.save(self._mine(moves.rewind), self._thread, ref)

    async def undo(self) -> Checkpoint:
        """Take the last change or rewind back; again for the one before it."""
        self._be_alone()
        return await self._runner.save(self._mine(moves.undo), self._thread)

    async def delete(self) -> bool:
        """Delete the conversation with its history; whether there was one.

        Whoever still adds to it gets a `Conflict`; `clear_session` begins it anew.
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
        **options: Unpack[SaveOptions],
    ) -> None:
        """Keep a paused run with the items of its session, in one checkpoint.

        ``items`` are added in the same one. The options are those of
        `RunState.to_json`: ``context_serializer``, ``strict_context``,
        ``include_tracing_api_key``. The items that answer a call of the run take it
        away when they are added: it can never be resumed behind them.
        """
        run, added = _run_state.written(state, options), checked(items)
        if self._held is not None:
            self._held.run = run
            self._held.added += added
        else:
            await self._change(Change(added=added, run=run, kind="pause"))

    async def load_run(
        self, agent: Agent[Any], **options: Unpack[LoadOptions]
    ) -> RunState[Any, Any] | None:
        """The paused run, ``None`` if there is none.

        ``agent`` is the one the run began with. The options are those of
        `RunState.from_json`: ``context_override``, ``context_deserializer``,
        ``strict_context``. A run is data: nothing that it names is imported or called.
        It holds approvals, so that whoever can write to the store can approve. One that
        this version of the SDK cannot read raises `FormatMismatch`. When two workers
        load a run and resume it, the second gets a `Conflict` from `add_items`.
        """
        held = self._held.run if self._held is not None else UNSET
        if held is UNSET:
            held = await self._runner.read(_run_state.find, self._place)
        if held is None:
            return None
        self._resumed = Resumed(held["id"], frozenset(held["calls"]))
        return await _run_state.read(self.session_id, held, agent, options)

    async def clear_run(self) -> None:
        """Give a paused run up; does nothing if there is none."""
        if self._held is not None:
            self._held.run = None
        else:
            await self._try(Change(run=None, kind="resume"))

    def once(self, tool: FunctionTool, *, again: bool = False) -> FunctionTool:
        """The same tool, whose calls are made once however often a run is resumed.

        A call is noted before it is made, and its result after. One that is made again,
        in whatever process, gives that result. One that began and never ended may have
        taken effect: the run fails, and the cause of its error is a `Conflict` with the
        code ``call_interrupted``. Look, then pass ``again=True`` to make such calls
        once more. A result that cannot be stored is noted as its text.
        """

        def read(call: str) -> Awaitable[Items]:
            now = Now(self._runner, self._place, self._resumed, self._held)
            return now.items(call)

        return once(tool, self._runner, self._place, read, again=again)

    # --- compaction -------------------------------------------------------------------

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Replace all items at once, for `OpenAIResponsesCompactionSession`."""
        if type(self) is not HoldfastSession:
            return False  # what a subclass makes of items must not be passed by
        kept = checked(items)
        if self._held is not None:
            self._held.is_cleared, self._held.dropped = True, []
            self._held.added = kept
        else:
            await self._try(Change(dropped=None, added=kept, kind="compaction"))
        return True

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[Any], bool] | None = None
    ) -> Snapshot | None:
        """The last items, and how to replace them if they are still the last."""
        if type(self) is not HoldfastSession or self._held is not None:
            return None
        return await snapshot(self._runner, self._place, limit, prune_prefix)

    # --- within -----------------------------------------------------------------------

    async def _read(self, limit: int | None) -> Items:
        return await self._runner.read(_changes.items, self._place, limit)

    def _mine(
        self, operation: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]]
    ) -> Callable[Concatenate[Context, P], Coroutine[Any, Any, T]]:
        """An operation that another owner's session refuses."""

        async def admitted(context: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
            await _changes.admit(context, self._place)
            return await operation(context, *args, **kwargs)

        return admitted

    async def _change(self, wanted: Change) -> None:
        await self._runner.save(_changes.change, self._place, wanted)
        if self._resumed is not None and self._resumed.is_answered_by(wanted.added):
            self._resumed = None  # and from now on a run like any other

    async def _try(self, wanted: Change) -> bool:
        """Whether there was anything to change."""
        try:
            await self._change(wanted)
        except Untouched:
            return False
        return True

    def _about(self, wrapper: Wrapper | None) -> bytes:
        if self._metadata is None or wrapper is None:
            return b""
        return encode_metadata(dict(self._metadata(wrapper)))

    def _be_open(self) -> None:
        if self._is_closed:
            raise Closed("the session is closed; open it again")

    def _be_alone(self) -> None:
        if self._held is not None:
            raise Conflict(
                f"a transaction of session {self.session_id!r} is open; end it first",
                code="in_transaction",
                thread=self._thread,
            )


def _settings(given: SessionSettings | dict[str, Any] | None) -> SessionSettings:
    if given is None:
        return SessionSettings()
    return SessionSettings(**given) if isinstance(given, dict) else given


def _inputs(items: Items) -> list[TResponseInputItem]:
    # The SDK's types are TypedDicts, which nothing checks at run time.
    return cast("list[TResponseInputItem]", items)
