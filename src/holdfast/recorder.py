"""Recorders: an agent's loop tells them what happens, and they save it in time.

What is told is kept in memory until the strategy says to save; then it becomes one
checkpoint of the conversation, with everything that is needed to resume.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, Self, TypedDict, TypeVar, Unpack

from holdfast._api.runner import Passage
from holdfast._engine.context import Context
from holdfast._engine.recorder.recording import AnyCall, Recording, Setup
from holdfast._engine.recorder.steps import Gate, Loop, Operation
from holdfast._engine.threads.lineage import Reference
from holdfast._messages.repair import How, Repair
from holdfast._messages.transcript import Call
from holdfast._port import run
from holdfast._values.records import UNSET, Checkpoint
from holdfast._values.reference import HEAD
from holdfast.errors import Unstorable
from holdfast.messages import AnyMessage
from holdfast.strategy import Strategy, after_tool_batch

T = TypeVar("T")


class Options(TypedDict, total=False):
    """How a recorder works.

    ``save`` says when to save. ``repair`` is what becomes of tool calls that have no
    answer when a conversation is loaded: with ``"interrupted"``, the default, they get
    one that says so, with ``"drop"`` they are taken out, with ``"propose"`` too and
    handed back, with ``None`` they stay open, to be finished by the loop. What the
    journal knows of them is used first. ``system`` replaces the stored system prompt,
    which is kept without. ``owner`` and ``agent`` are for a conversation that is new;
    another owner's is not found.
    """

    save: Strategy
    repair: How | None
    system: str | None
    owner: str | None
    agent: str | None


def _setup(id_: str, options: Options) -> Setup:
    save: object = options.get("save", after_tool_batch())
    if not isinstance(save, Strategy):
        raise Unstorable("save", "must be a strategy, such as after_tool_batch()")
    return Setup(
        id=id_,
        save=save,
        repair=options.get("repair", "interrupted"),
        system=options.get("system"),
        owner=options.get("owner"),
        agent=options.get("agent"),
    )


class _Told:
    """What both doors show of a recording, without waiting for anything."""

    def __init__(
        self, context: Context, id_: str, options: Options, gate: Gate
    ) -> None:
        self._recording = Recording(_setup(id_, options), context.clock, context.new_id)
        self._loop = Loop(self._recording, gate)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, save={self._recording.setup.save})"

    @property
    def id(self) -> str:
        """The id of the conversation."""
        return self._recording.setup.id

    @property
    def messages(self) -> list[AnyMessage]:
        """The whole transcript, with what is not saved yet."""
        return self._recording.given_back()

    @property
    def open_calls(self) -> list[Call]:
        """The tool calls that have no result yet, in order."""
        return self._recording.open_calls()

    @property
    def iterations(self) -> int:
        """How often the loop went round, all runs together."""
        return self._recording.iteration

    @property
    def usage(self) -> dict[str, Any]:
        """The sums of what was told as usage, all runs together."""
        return self._recording.usage

    @property
    def metadata(self) -> dict[str, Any]:
        """The caller's own values; what is put there is saved with the next save."""
        return self._recording.metadata

    @property
    def pending(self) -> int:
        """How many messages are not saved yet."""
        return self._recording.pending

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """What was wrong with the transcript when it was loaded."""
        return self._recording.repairs

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The last save, ``None`` if the conversation is new."""
        return self._recording.checkpoint


class _Blocking:
    """The gate of the blocking door: nothing here suspends."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.RLock()

    @property
    def lock(self) -> Self:
        return self

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()

    async def run(self, operation: Operation[T]) -> T:
        return await operation(self._context)

    async def save(self, operation: Operation[T], thread: str) -> T:
        del thread  # whoever commits, waits
        return await operation(self._context)

    async def finished(self, result: object) -> Any:
        if hasattr(result, "__await__"):
            if isinstance(result, Coroutine):
                result.close()
            raise Unstorable("function", "must not be async; record with open_async()")
        return result


class _Awaited:
    """The gate of the async door."""

    def __init__(self, passage: Passage) -> None:
        import asyncio  # noqa: PLC0415 - the blocking door does not need it

        self._passage = passage
        self.lock = asyncio.Lock()

    async def run(self, operation: Operation[T]) -> T:
        return await self._passage.run(operation(self._passage.context))

    async def save(self, operation: Operation[T], thread: str) -> T:
        return await self._passage.save(operation(self._passage.saving), thread)

    async def finished(self, result: Any) -> Any:
        return await result if hasattr(result, "__await__") else result


class Recorder(_Told):
    """Records a conversation; ``store.conversations.recorder(id)``.

    It goes on where the conversation stopped; one that does not exist begins with the
    first save. An error of a save is raised and loses nothing: what was told stays
    pending, is not to be told again, and goes with the next save. Usable from several
    threads at once, for tools that run side by side.
    """

    def __init__(
        self,
        context: Context,
        id: str,  # noqa: A002 - public name
        **options: Unpack[Options],
    ) -> None:
        super().__init__(context, id, options, _Blocking(context))
        self.resume()

    # --- telling ----------------------------------------------------------------------

    def add(self, *messages: AnyMessage) -> None:
        """Put messages at the end, such as what the user said."""
        run(self._loop.add(messages))

    def iteration(self) -> int:
        """The loop goes round once more; gives the number of the round."""
        return run(self._loop.iteration())

    def llm_response(
        self,
        message: AnyMessage | Sequence[AnyMessage],
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        """The model replied, with a message or several items.

        The numbers of ``usage`` are summed up by name.
        """
        run(self._loop.llm_response(message, usage))

    def tool_call(self, call: AnyCall) -> None:
        """A tool is about to run; `call` tells of this itself."""
        run(self._loop.tool_call(call))

    def tool_result(
        self,
        result: AnyMessage | AnyCall,
        content: object = UNSET,
        *,
        is_error: bool = False,
    ) -> None:
        """A tool gave something: a message, or a call or its id, and the content.

        Of a call, a result is made in the dialect of the reply that made it.
        """
        run(self._loop.tool_result(result, content, is_error=is_error))

    # --- saving and resuming ----------------------------------------------------------

    def save(
        self,
        label: str | None = None,
        *,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
    ) -> Checkpoint:
        """Save now what is not saved yet; without any, gives the last checkpoint.

        `Conflict` with the code ``transcript_moved`` if somebody else changed the
        messages meanwhile.
        """
        return run(self._loop.save(label, tags, metadata))

    def resume(self, at: Reference = HEAD, *, discard: bool = False) -> None:
        """Load the conversation again, or go back to one of its checkpoints.

        To go back is to rewind the thread: what was ahead stays reachable. With
        messages that are not saved, `Conflict` is raised unless you ``discard`` them.
        """
        run(self._loop.resume(at, discard=discard))

    def latest_safe(self) -> Checkpoint | None:
        """The newest checkpoint at which every tool call had its answer."""
        return run(self._loop.latest_safe())

    # --- calls made once --------------------------------------------------------------

    def call(
        self, call: AnyCall, function: Callable[..., Any], *, again: bool = False
    ) -> Any:
        """What ``function(**arguments)`` gives, run once however often this is asked.

        What led to the call is saved first, the call is journalled before it is made
        and its result after: asked again, even after a crash, it gives the result and
        runs nothing. `Conflict` with the code ``call_interrupted`` says that it began
        and nobody knows whether it ended: look, then pass ``again=True`` or `resolve`
        it. A call that raised may be made again. One id with another name or other
        arguments is a `Conflict`.
        """
        return run(self._loop.call(call, function, again=again))

    def resolve(self, call: AnyCall, result: object) -> Any:
        """Tell what an interrupted call gave; gives the result in force."""
        return run(self._loop.resolve(call, result))

    def interrupted(self) -> list[Call]:
        """The calls that began and nobody knows whether they ended, oldest first."""
        return run(self._loop.interrupted())


class AsyncRecorder(_Told):
    """As `Recorder`, awaited; the functions it calls may be coroutine functions.

    Awaiting a new one loads its conversation.
    """

    def __init__(
        self,
        passage: Passage,
        id: str,  # noqa: A002 - public name
        **options: Unpack[Options],
    ) -> None:
        super().__init__(passage.context, id, options, _Awaited(passage))

    def __await__(self) -> Generator[Any, None, Self]:
        return self._resumed().__await__()

    async def _resumed(self) -> Self:
        await self.resume()
        return self

    # --- telling ----------------------------------------------------------------------

    async def add(self, *messages: AnyMessage) -> None:
        await self._loop.add(messages)

    async def iteration(self) -> int:
        return await self._loop.iteration()

    async def llm_response(
        self,
        message: AnyMessage | Sequence[AnyMessage],
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        await self._loop.llm_response(message, usage)

    async def tool_call(self, call: AnyCall) -> None:
        await self._loop.tool_call(call)

    async def tool_result(
        self,
        result: AnyMessage | AnyCall,
        content: object = UNSET,
        *,
        is_error: bool = False,
    ) -> None:
        await self._loop.tool_result(result, content, is_error=is_error)

    # --- saving and resuming ----------------------------------------------------------

    async def save(
        self,
        label: str | None = None,
        *,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
    ) -> Checkpoint:
        return await self._loop.save(label, tags, metadata)

    async def resume(self, at: Reference = HEAD, *, discard: bool = False) -> None:
        await self._loop.resume(at, discard=discard)

    async def latest_safe(self) -> Checkpoint | None:
        return await self._loop.latest_safe()

    # --- calls made once --------------------------------------------------------------

    async def call(
        self, call: AnyCall, function: Callable[..., Any], *, again: bool = False
    ) -> Any:
        return await self._loop.call(call, function, again=again)

    async def resolve(self, call: AnyCall, result: object) -> Any:
        return await self._loop.resolve(call, result)

    async def interrupted(self) -> list[Call]:
        return await self._loop.interrupted()
