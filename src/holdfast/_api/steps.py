"""The steps of a recorder, written once for the sync and the async API.

A step is a coroutine that changes the recording and runs operations through the runner.
The sync recorder has one that never suspends, and finishes each step with `run`.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import msgspec

from holdfast._api.files import draft_of
from holdfast._api.runner import AsyncRunner
from holdfast._engine.effects import calls, interrupted, undo
from holdfast._engine.effects.calls import JournaledCall
from holdfast._engine.recorder import storage
from holdfast._engine.recorder.recording import AnyCall, Recording
from holdfast._engine.recorder.storage import LoadRequest
from holdfast._engine.records import conversations
from holdfast._engine.threads.lineage import Reference
from holdfast._messages.transcript import TranscriptCall
from holdfast._values.arguments import checked_flag, checked_flags, checked_function
from holdfast._values.records import UNSET, Checkpoint
from holdfast._values.reference import HEAD
from holdfast.effects import Compensation, Declaration, Effect, declaration_of
from holdfast.errors import Conflict, HoldfastError, NotFound, Unstorable
from holdfast.messages import AnyMessage, Message
from holdfast.strategy import Wish


class ThreadLock:
    """A lock for threads, in the form that steps use; it blocks and never suspends."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


async def plain_result(result: object) -> Any:
    """The result of a tool of the sync API, which cannot await it."""
    if hasattr(result, "__await__"):
        if isinstance(result, Coroutine):
            result.close()
        raise Unstorable("function", "must not be async; record with open_async()")
    return result


async def awaited_result(result: Any) -> Any:
    """The result of a tool of the async API, awaited if it has to be."""
    return await result if hasattr(result, "__await__") else result


class Steps:
    """The steps of an agent's loop that a recorder records.

    ``lock`` is held while the recording changes. ``finished`` gives the result of a
    tool from what its function returned.
    """

    def __init__(
        self,
        recording: Recording,
        runner: AsyncRunner,
        lock: AbstractAsyncContextManager[object],
        finished: Callable[[object], Awaitable[Any]],
    ) -> None:
        self._recording, self._runner = recording, runner
        self._lock, self._finished = lock, finished
        # Results that could not be journaled yet, with the number of the attempt.
        self._unrecorded: dict[str, tuple[int, object]] = {}
        self._workspace = recording.setup.workspace

    async def resume(
        self,
        at: Reference,
        *,
        discard: bool,
        tell: bool = True,
        compensate: bool = False,
    ) -> None:
        checked_flags(discard=discard, tell=tell, compensate=compensate)
        recording, setup = self._recording, self._recording.setup
        async with self._lock:
            leaves = at != HEAD and recording.pending
            if (recording.has_unsaved or leaves) and not discard:
                raise Conflict(
                    "some messages are not saved yet; save() them first, or pass"
                    " discard=True to forget them",
                    code="unsaved",
                    thread=recording.thread,
                )
            request = LoadRequest(
                id=setup.id,
                at=at,
                owner=setup.owner,
                discard=discard,
                known_keys=(*recording.kept_keys, *recording.obsolete),
                known_id=recording.unclaimed or recording.next_id,
            )
            found = await self._runner.run(storage.load, request)
            recording.load(found, tell=tell and not compensate)
            if compensate and found is not None:
                undone = {effect.place for effect in (await self.compensate()).undone}
                behind = tuple(e for e in found.behind if e.place not in undone)
                left = msgspec.structs.replace(found, behind=behind)
                recording.load(left, tell=tell)

    async def latest_safe(self) -> Checkpoint | None:
        if self._recording.checkpoint is None:
            return None
        id_ = self._recording.setup.id
        return await self._runner.run(conversations.latest_safe, id_)

    # --- the loop ---------------------------------------------------------------------

    async def add(self, messages: Sequence[AnyMessage]) -> None:
        async with self._lock:
            self._recording.add(messages)
            await self._keep()

    async def iteration(self) -> int:
        async with self._lock:
            self._recording.go_on()
            self._recording.iteration += 1
            number = self._recording.iteration
            await self._follow(self._recording.wish("iteration"))
        return number

    async def llm_response(
        self,
        message: AnyMessage | Sequence[AnyMessage],
        usage: Mapping[str, Any] | None,
    ) -> None:
        items = message if isinstance(message, list | tuple) else [message]
        async with self._lock:
            total = self._recording.used(usage)
            self._recording.add(cast("Sequence[AnyMessage]", items))
            self._recording.usage = total
            await self._follow(self._recording.wish("llm_response"))

    async def tool_call(self, call: AnyCall) -> None:
        async with self._lock:
            name = self._recording.call_of(call).name
            await self._follow(self._recording.wish("tool_call", name), name)

    async def tool_result(
        self, result: AnyMessage | AnyCall, content: object, *, is_error: bool
    ) -> None:
        checked_flag(is_error, "is_error")
        async with self._lock:
            if content is UNSET:
                self._recording.add([_message(result)])
            else:
                self._recording.answer(_call(result), content, is_error=is_error)
            await self._follow(self._recording.wish("tool_result"))

    async def _keep(self) -> None:
        """Make durable what no checkpoint has: it must not be lost with the process."""
        if self._recording.unkept is None:
            return
        if self._recording.is_retry:
            # The save that failed may have come through; only a save can tell.
            await self._flush()
            return
        new = self._recording.part()
        id_ = self._recording.setup.id
        try:
            is_kept = await self._runner.save(storage.keep, new, id_)
        except Conflict as conflict:
            if not self._recording.follow(conflict.found):
                raise
            await self._keep()
        except BaseException:
            self._recording.doubt(new)
            raise
        else:
            if is_kept:
                self._recording.kept(new)
                return
            self._recording.claimed(new)
            await self._keep()

    # --- saving -----------------------------------------------------------------------

    async def save(
        self,
        label: str | None,
        tags: Sequence[str],
        metadata: Mapping[str, object] | None,
    ) -> Checkpoint:
        async with self._lock:
            last = self._recording.checkpoint
            is_marked = label is not None or tags or metadata
            is_whole = self._recording.is_saved and self._workspace is None
            if last is not None and is_whole and not is_marked:
                return last
            return await self._flush(label=label, tags=tags, metadata=metadata)

    async def _flush(self, **how: Any) -> Checkpoint:
        if self._recording.unclaimed is not None:
            await self._keep()
        batch = self._recording.batch(**how)
        if self._workspace is not None:
            files = await draft_of(self._runner, self._workspace)
            how_with = msgspec.structs.replace(batch.how, files=files)
            batch = msgspec.structs.replace(batch, how=how_with)
        saved = await self._runner.save(storage.flush, batch)
        return self._recording.saved(batch, saved)

    async def _follow(self, wish: Wish | None, tool: str = "") -> None:
        if wish == "save":
            await self._flush()
        elif wish == "pre_operation" and not await self._secure(tool):
            await self._flush(kind=wish, label=tool)
        await self._keep()

    async def _secure(self, tool: str) -> bool:
        """Make a checkpoint of the agent; False if there is no agent."""
        agent = self._recording.agent
        if agent is None:
            return False
        if not self._recording.is_saved:
            await self._flush()
        return await self._runner.run(storage.secure, agent, tool)

    # --- calls made once --------------------------------------------------------------

    async def call(
        self, call: AnyCall, function: Callable[..., Any] | None, *, again: bool
    ) -> Any:
        checked_flag(again, "again")
        async with self._lock:
            made_by = self._recording.call_of(call)
            run = self._tool(made_by, function)
            tool = declaration_of(run)
            keywords = _keywords(made_by)
            made = self._recording.journaled(made_by, tool)
            if tool.is_repeatable:
                await self._prepare(made_by)
                attempt = None
            else:
                if made.key in self._unrecorded:
                    # The result may be that of another call, made before a rewind.
                    await self._completed(made, *self._unrecorded[made.key])
                permitted = await self._permit(made, tool, again=again)
                if permitted.is_completed:
                    return permitted.result
                attempt = permitted.attempt
        if attempt is None:
            return await self._finished(run(**keywords))
        return await self._made(made, attempt, run, keywords)

    async def _permit(
        self, made: JournaledCall, tool: Declaration, *, again: bool
    ) -> calls.Permission:
        """Find out whether a call may be made, and if so record that it begins."""
        recording = self._recording
        if recording.is_retry:
            # It is not known whether the last save came through, and with it not to
            # which checkpoint the call belongs.
            await self._flush()
        else:
            # A line that is not durable must not take over what another one has.
            await self._keep()
        made = recording.journaled(made.call, tool)
        permitted = await self._runner.save(
            calls.permit, made, recording.line, recording.policy(tool), again=again
        )
        if not permitted.is_completed:
            await self._prepare(made.call)
            # A checkpoint made just now has the call.
            made = recording.journaled(made.call, tool)
            await self._reserve(made)
            await self._runner.save(calls.begin, made, permitted)
        if recording.checkpoint is not None and made.anchor == recording.checkpoint.id:
            await self._runner.save(storage.anchor_call, made)
        return permitted

    async def _reserve(self, made: JournaledCall) -> None:
        """Make the id durable to which a call belongs that no message makes."""
        if self._recording.reserve(made.anchor):
            await self._keep()

    async def _prepare(self, call: TranscriptCall) -> None:
        """Make durable what led to a call before it can have an effect."""
        await self._follow(self._recording.wish("tool_call", call.name), call.name)

    async def _made(
        self,
        made: JournaledCall,
        attempt: int,
        function: Callable[..., Any],
        keywords: Mapping[str, Any],
    ) -> Any:
        try:
            result = await self._finished(function(**keywords))
        except Exception as error:
            await self._failed(made, attempt, error)
            raise
        in_force = await self._completed(made, attempt, result)
        async with self._lock:
            if self._recording.has_placeholder(made.call):
                await self._answered(made.call, in_force)
        return in_force

    def _tool(
        self, call: TranscriptCall, function: Callable[..., Any] | None
    ) -> Callable[..., Any]:
        tools = self._recording.setup.tools
        if function is not None:
            return checked_function(function, "function")
        found = tools.get(call.name)
        if found is None:
            known = f"this recorder knows {sorted(tools)}" if tools else "pass it"
            raise NotFound(
                f"there is no tool {call.name!r} for call {call.id!r}; {known}, or"
                " answer with tool_result(), so that the model knows",
                thread=self._recording.thread,
                reference=call.name,
            )
        return found

    async def _completed(
        self, made: JournaledCall, attempt: int, result: object
    ) -> Any:
        self._unrecorded[made.key] = attempt, result
        try:
            in_force = await self._runner.save(calls.complete, made, attempt, result)
        except (Unstorable, Conflict) as refused:
            # Trying again would not help.
            if isinstance(refused, Unstorable) or refused.code == "call_ended":
                del self._unrecorded[made.key]
            raise
        self._unrecorded.pop(made.key, None)
        return in_force

    async def _failed(
        self, made: JournaledCall, attempt: int, error: Exception
    ) -> None:
        text = f"{type(error).__name__}: {error}"
        try:
            await self._runner.save(calls.fail, made, attempt, text)
        except HoldfastError as problem:
            error.add_note(f"The journal could not record it: {problem}")

    async def resolve(self, call: AnyCall, result: object) -> Any:
        async with self._lock:
            known = self._known(call)
            tool = declaration_of(self._recording.setup.tools.get(known.name))
            made = self._recording.journaled(known, tool)
            self._unrecorded.pop(made.key, None)
            await self._reserve(made)
            line = self._recording.line
            in_force = await self._runner.save(calls.resolve, made, line, result)
            if self._recording.is_called(known.id):
                await self._answered(known, in_force)
            return in_force

    async def _answered(self, call: TranscriptCall, result: object) -> None:
        """Put a result into the transcript, where the call has none that is known."""
        recording = self._recording
        if call.id in recording.tally.open or recording.has_placeholder(call):
            recording.answer(call, result, is_error=False)
            await self._follow(recording.wish("tool_result"))

    def _known(self, call: AnyCall) -> TranscriptCall:
        """A call, also one that a repair has removed from the transcript."""
        try:
            return self._recording.call_of(call)
        except NotFound:
            for repair in self._recording.repairs:
                if repair.call_id == call:
                    return TranscriptCall(repair.call_id, repair.name, repair.arguments)
            raise

    async def interrupted(self) -> list[TranscriptCall]:
        recording = self._recording
        record = recording.record
        is_shared = record and record.forked_from and record.effects != "run"
        begun = await self._runner.run(
            interrupted.interrupted,
            recording.thread,
            recording.line,
            family=record.family if record and is_shared else None,
        )
        return [self._journaled(effect) for effect in begun]

    def _journaled(self, effect: Effect) -> TranscriptCall:
        try:
            return self._known(effect.call_id)
        except NotFound:
            return TranscriptCall(effect.call_id, effect.tool, effect.arguments)

    # --- effects left behind ----------------------------------------------------------

    async def compensate(self) -> Compensation:
        recording = self._recording

        async def find() -> list[Effect]:
            return await self._runner.run(
                undo.to_undo_beside, recording.thread, recording.line
            )

        return await undo.undo_all(
            find, self._declared, self._runner.save, self._finished
        )

    def _declared(self, tool: str) -> Declaration:
        return declaration_of(self._recording.setup.tools.get(tool))


def _message(result: AnyMessage | AnyCall) -> AnyMessage:
    if isinstance(result, Message | dict):
        return result
    raise Unstorable("content", "is missing; pass what the tool returned")


def _call(result: AnyMessage | AnyCall) -> AnyCall:
    if not isinstance(result, Message):
        return result
    raise Unstorable("content", "is in the message already; pass the call instead")


def _keywords(call: TranscriptCall) -> dict[str, Any]:
    arguments = call.arguments
    if not isinstance(arguments, dict):
        raise Unstorable(
            "arguments",
            f"of call {call.id!r} are no JSON object: {arguments!r};"
            " answer with tool_result(), so that the model knows",
        )
    return cast("dict[str, Any]", arguments)
