"""The steps of a recorder, written once for the sync and the async API.

A step is a coroutine that changes the recording and runs operations through the runner.
The sync recorder has one that never suspends, and finishes each step with `run`.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from holdfast._api.runner import AsyncRunner
from holdfast._engine.recorder import calls, storage
from holdfast._engine.recorder.calls import JournaledCall
from holdfast._engine.recorder.recording import AnyCall, Recording
from holdfast._engine.records import conversations
from holdfast._engine.threads.lineage import Reference
from holdfast._messages.transcript import TranscriptCall
from holdfast._values.records import UNSET, Checkpoint
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
    """What a tool returned to the sync API, which cannot await it."""
    if hasattr(result, "__await__"):
        if isinstance(result, Coroutine):
            result.close()
        raise Unstorable("function", "must not be async; record with open_async()")
    return result


async def awaited_result(result: Any) -> Any:
    """What a tool returned to the async API, awaited if need be."""
    return await result if hasattr(result, "__await__") else result


class Steps:
    """What a recorder does at each step of an agent's loop.

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

    async def resume(self, at: Reference, *, discard: bool) -> None:
        recording, setup = self._recording, self._recording.setup
        async with self._lock:
            if recording.has_unsaved and not discard:
                raise Conflict(
                    "some messages are not saved yet; save() them first, or pass"
                    " discard=True to forget them",
                    code="unsaved",
                    thread=recording.thread,
                )
            found = await self._runner.run(storage.load, setup.id, at, setup.owner)
            recording.load(found)

    async def latest_safe(self) -> Checkpoint | None:
        if self._recording.checkpoint is None:
            return None
        id_ = self._recording.setup.id
        return await self._runner.run(conversations.latest_safe, id_)

    # --- the loop ---------------------------------------------------------------------

    async def add(self, messages: Sequence[AnyMessage]) -> None:
        async with self._lock:
            self._recording.add(messages)

    async def iteration(self) -> int:
        async with self._lock:
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
        async with self._lock:
            if content is UNSET:
                self._recording.add([_message(result)])
            else:
                self._recording.answer(_call(result), content, is_error=is_error)
            await self._follow(self._recording.wish("tool_result"))

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
            if last is not None and self._recording.is_saved and not is_marked:
                return last
            return await self._flush(label=label, tags=tags, metadata=metadata)

    async def _flush(self, **how: Any) -> Checkpoint:
        batch = self._recording.batch(**how)
        saved = await self._runner.save(storage.flush, batch)
        return self._recording.saved(batch, saved)

    async def _follow(self, wish: Wish | None, tool: str = "") -> None:
        if wish == "save":
            await self._flush()
        elif wish == "pre_operation" and not await self._secure(tool):
            await self._flush(kind=wish, label=tool)

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
        self, call: AnyCall, function: Callable[..., Any], *, again: bool
    ) -> Any:
        async with self._lock:
            made = self._recording.journaled(self._recording.call_of(call))
            keywords = _keywords(made.call)
            if made.key in self._unrecorded:
                return await self._completed(made, *self._unrecorded[made.key])
            status = await self._runner.run(calls.expect, made, again=again)
            if status.is_completed:
                return status.result
            attempt = status.attempt + 1
            await self._begin(made, attempt)
        try:
            result = await self._finished(function(**keywords))
        except Exception as error:
            await self._failed(made, attempt, error)
            raise
        return await self._completed(made, attempt, result)

    async def _begin(self, made: JournaledCall, attempt: int) -> None:
        """Save what led to a call before it can have an effect."""
        name = made.call.name
        await self._follow(self._recording.wish("tool_call", name), name)
        if self._recording.has_news:
            await self._flush()
        await self._runner.save(calls.begin, made, attempt)

    async def _completed(
        self, made: JournaledCall, attempt: int, result: object
    ) -> Any:
        self._unrecorded[made.key] = attempt, result
        try:
            in_force = await self._runner.save(calls.complete, made, attempt, result)
        except Unstorable:
            # Trying again would not help; the call stays one that did not end.
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
        made = self._recording.journaled(self._known(call))
        self._unrecorded.pop(made.key, None)
        return await self._runner.save(calls.resolve, made, result)

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
        begun = await self._runner.run(calls.interrupted, self._recording.thread)
        return [self._journaled(cast("dict[str, str]", entry)) for entry in begun]

    def _journaled(self, begun: Mapping[str, str]) -> TranscriptCall:
        try:
            return self._known(begun["id"])
        except NotFound:
            return TranscriptCall(begun["id"], begun["name"], None)


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
