"""What a recorder does when an agent's loop tells it something, written once.

The steps are coroutines over a gate, which says how operations are run: through the
blocking door they never suspend.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar, cast

from holdfast._engine.context import Context
from holdfast._engine.recorder import calls, storage
from holdfast._engine.recorder.calls import Made
from holdfast._engine.recorder.recording import AnyCall, Recording
from holdfast._engine.records import conversations
from holdfast._engine.threads.lineage import Reference
from holdfast._messages.transcript import Call
from holdfast._values.records import UNSET, Checkpoint
from holdfast.errors import Conflict, HoldfastError, NotFound, Unstorable
from holdfast.messages import AnyMessage, Message
from holdfast.strategy import Wish

T = TypeVar("T")

Operation = Callable[[Context], Coroutine[Any, Any, T]]


class Gate(Protocol):
    """How operations are run, and what keeps steps from mixing."""

    @property
    def lock(self) -> AbstractAsyncContextManager[object]:
        """Held while the recording changes."""
        ...

    async def run(self, operation: Operation[T]) -> T:
        """The result of an operation."""
        ...

    async def save(self, operation: Operation[T], thread: str) -> T:
        """The result of an operation that changes a thread."""
        ...

    async def finished(self, result: object) -> Any:
        """What a tool gave, waited for if that is possible."""
        ...


class Loop:
    """The steps of an agent's loop as they are recorded."""

    def __init__(self, recording: Recording, gate: Gate) -> None:
        self.recording, self.gate = recording, gate
        # Results that could not be journalled yet, with the number of the attempt.
        self.held: dict[str, tuple[int, object]] = {}

    async def resume(self, at: Reference, *, discard: bool) -> None:
        recording, setup = self.recording, self.recording.setup
        async with self.gate.lock:
            if recording.is_told and not discard:
                raise Conflict(
                    "some messages are not saved yet; save() them first, or pass"
                    " discard=True to forget them",
                    code="unsaved",
                    thread=recording.thread,
                )
            recording.load(
                await self.gate.run(
                    lambda context: storage.load(context, setup.id, at, setup.owner)
                )
            )

    async def latest_safe(self) -> Checkpoint | None:
        if self.recording.checkpoint is None:
            return None
        id_ = self.recording.setup.id
        return await self.gate.run(
            lambda context: conversations.latest_safe(context, id_)
        )

    # --- telling ----------------------------------------------------------------------

    async def add(self, messages: Sequence[AnyMessage]) -> None:
        async with self.gate.lock:
            self.recording.add(messages)

    async def iteration(self) -> int:
        async with self.gate.lock:
            self.recording.iteration += 1
            number = self.recording.iteration
            await self._heed(self.recording.wish("iteration"))
        return number

    async def llm_response(
        self,
        message: AnyMessage | Sequence[AnyMessage],
        usage: Mapping[str, Any] | None,
    ) -> None:
        items = message if isinstance(message, list | tuple) else [message]
        async with self.gate.lock:
            total = self.recording.used(usage)
            self.recording.add(cast("Sequence[AnyMessage]", items))
            self.recording.usage = total
            await self._heed(self.recording.wish("llm_response"))

    async def tool_call(self, call: AnyCall) -> None:
        async with self.gate.lock:
            name = self.recording.call_of(call).name
            await self._heed(self.recording.wish("tool_call", name), name)

    async def tool_result(
        self, result: AnyMessage | AnyCall, content: object, *, is_error: bool
    ) -> None:
        async with self.gate.lock:
            if content is UNSET:
                self.recording.add([_message(result)])
            else:
                self.recording.answer(_call(result), content, is_error=is_error)
            await self._heed(self.recording.wish("tool_result"))

    # --- saving -----------------------------------------------------------------------

    async def save(
        self,
        label: str | None,
        tags: Sequence[str],
        metadata: Mapping[str, object] | None,
    ) -> Checkpoint:
        async with self.gate.lock:
            last = self.recording.checkpoint
            is_marked = label is not None or tags or metadata
            if last is not None and self.recording.is_saved and not is_marked:
                return last
            return await self._flush(label=label, tags=tags, metadata=metadata)

    async def _flush(self, **how: Any) -> Checkpoint:
        batch = self.recording.batch(**how)
        saved = await self.gate.save(
            lambda context: storage.flush(context, batch), batch.thread
        )
        return self.recording.saved(batch, saved)

    async def _heed(self, wish: Wish | None, tool: str = "") -> None:
        if wish == "save":
            await self._flush()
        elif wish == "pre_operation" and not await self._secure(tool):
            await self._flush(kind=wish, label=tool)

    async def _secure(self, tool: str) -> bool:
        """A checkpoint of the agent with all its conversations, if there is one."""
        agent = self.recording.agent
        if agent is None:
            return False
        if not self.recording.is_saved:
            await self._flush()
        return await self.gate.run(lambda context: storage.secure(context, agent, tool))

    # --- calls made once --------------------------------------------------------------

    async def call(
        self, call: AnyCall, function: Callable[..., Any], *, again: bool
    ) -> Any:
        async with self.gate.lock:
            made = self.recording.made(self.recording.call_of(call))
            keywords = _keywords(made.call)
            if made.key in self.held:
                return await self._completed(made, *self.held[made.key])
            outlook = await self.gate.run(
                lambda context: calls.expect(context, made, again=again)
            )
            if outlook.is_completed:
                return outlook.result
            attempt = outlook.attempt + 1
            await self._begin(made, attempt)
        try:
            result = await self.gate.finished(function(**keywords))
        except Exception as error:
            await self._failed(made, attempt, error)
            raise
        return await self._completed(made, attempt, result)

    async def _begin(self, made: Made, attempt: int) -> None:
        """What led to a call is saved before it has any effect."""
        name = made.call.name
        await self._heed(self.recording.wish("tool_call", name), name)
        if self.recording.has_news:
            await self._flush()
        await self.gate.save(
            lambda context: calls.begin(context, made, attempt), made.thread
        )

    async def _completed(self, made: Made, attempt: int, result: object) -> Any:
        self.held[made.key] = attempt, result
        try:
            in_force = await self.gate.save(
                lambda context: calls.complete(context, made, attempt, result),
                made.thread,
            )
        except Unstorable:
            # Trying again would not help; it remains a call that did not end.
            del self.held[made.key]
            raise
        self.held.pop(made.key, None)
        return in_force

    async def _failed(self, made: Made, attempt: int, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        try:
            await self.gate.save(
                lambda context: calls.fail(context, made, attempt, text), made.thread
            )
        except HoldfastError as problem:
            error.add_note(f"The journal could not be told of it: {problem}")

    async def resolve(self, call: AnyCall, result: object) -> Any:
        made = self.recording.made(self._known(call))
        self.held.pop(made.key, None)
        return await self.gate.save(
            lambda context: calls.resolve(context, made, result), made.thread
        )

    def _known(self, call: AnyCall) -> Call:
        """A call, even if a repair has taken it out of the transcript."""
        try:
            return self.recording.call_of(call)
        except NotFound:
            for repair in self.recording.repairs:
                if repair.call_id == call:
                    return Call(repair.call_id, repair.name, repair.arguments)
            raise

    async def interrupted(self) -> list[Call]:
        thread = self.recording.thread
        noted = await self.gate.run(lambda context: calls.interrupted(context, thread))
        return [self._noted(cast("dict[str, str]", begun)) for begun in noted]

    def _noted(self, begun: Mapping[str, str]) -> Call:
        try:
            return self._known(begun["id"])
        except NotFound:
            return Call(begun["id"], begun["name"], None)


def _message(result: AnyMessage | AnyCall) -> AnyMessage:
    if isinstance(result, Message | dict):
        return result
    raise Unstorable("content", "is missing; pass what the tool gave")


def _call(result: AnyMessage | AnyCall) -> AnyCall:
    if not isinstance(result, Message):
        return result
    raise Unstorable("content", "is in the message already; pass the call instead")


def _keywords(call: Call) -> dict[str, Any]:
    arguments = call.arguments
    if not isinstance(arguments, dict):
        raise Unstorable(
            "arguments",
            f"of call {call.id!r} are no JSON object: {arguments!r};"
            " answer with tool_result(), telling the model so",
        )
    return cast("dict[str, Any]", arguments)
