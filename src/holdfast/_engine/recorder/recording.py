"""What a recorder holds in memory: the transcript, the run, and what of it is saved.

It decides and never waits; the sync and the async recorder work on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from holdfast._engine.recorder.calls import JournaledCall, key_of
from holdfast._engine.recorder.storage import (
    Batch,
    LoadedConversation,
    SaveAttempt,
    transcript_of,
)
from holdfast._engine.records.conversations import KIND, thread_of
from holdfast._engine.threads import save
from holdfast._messages.attachments import Stored
from holdfast._messages.dialects import is_block, new_host, result_of
from holdfast._messages.repair import How, Repair, repaired
from holdfast._messages.tally import Tally
from holdfast._messages.transcript import (
    TranscriptCall,
    call_in,
    calls_of,
    decoded,
    open_calls,
    parts_of,
    role_of,
    text_of,
)
from holdfast._port import Start
from holdfast._values import codec
from holdfast._values.records import Checkpoint, checked_name
from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.messages import AnyMessage, ToolCall, accepted, restored
from holdfast.strategy import Event, Happening, Strategy, Wish

# A call as the model made it, in any dialect, as a record, or by its id.
AnyCall: TypeAlias = TranscriptCall | ToolCall | Mapping[str, Any] | str


class RecorderSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a recorder, checked."""

    id: str
    save: Strategy
    repair: How | None
    system: str | None
    owner: str | None
    agent: str | None


class Recording:
    """A conversation being recorded."""

    def __init__(
        self, setup: RecorderSetup, clock: Callable[[], int], new_id: Callable[[], str]
    ) -> None:
        self.setup, self.clock, self.new_id = setup, clock, new_id
        self.thread = thread_of(setup.id)
        self.load(None)

    # --- loading ----------------------------------------------------------------------

    def load(self, found: LoadedConversation | None) -> None:
        """Begin with what is stored, or with nothing."""
        self.messages: list[Stored] = list(found.messages) if found else []
        self.stored = len(self.messages)
        self.before = found.before if found else None
        self.checkpoint = found.checkpoint if found else None
        self.agent = found.agent if found else self.setup.agent
        self.attempts: tuple[SaveAttempt, ...] = ()
        # Whether stored messages were changed, so that all have to be written again.
        self.rewrite = False
        # Whether messages were added that only this recorder has.
        self.has_unsaved = False
        self.repairs: tuple[Repair, ...] = ()
        self._resume_run(found.run if found else {})
        self._repair(found.results if found else {})
        self._set_system()
        self.tally = Tally().after(self.messages)
        self.saved_at = self.clock()

    def _resume_run(self, run: Mapping[str, Any]) -> None:
        self.iteration: int = run.get("iteration", 0)
        self.usage: dict[str, Any] = dict(run.get("usage", {}))
        self.metadata: dict[str, Any] = dict(run.get("metadata", {}))
        self.other = {key: run[key] for key in run if key not in _RUN}
        self.saved_iteration = self.iteration
        self.saved_run = self._run_text()

    def _repair(self, results: Mapping[str, object]) -> None:
        if self.setup.repair is None:
            return
        mended = repaired(self.messages, self.setup.repair, results)
        self.repairs = mended.repairs
        if mended.repairs:
            self.messages = cast("list[Stored]", mended.messages)
            self.rewrite = True

    def _set_system(self) -> None:
        """Put the given system prompt in the place of the stored one."""
        text = self.setup.system
        if text is None:
            return
        system = [n for n, m in enumerate(self.messages) if role_of(m) == "system"]
        if not system:
            self.messages.insert(0, {"role": "system", "content": text})
        elif text_of(self.messages[system[0]]) == text:
            return
        else:
            old = self.messages[system[0]]
            self.messages[system[0]] = {**old, "content": text}
        self.rewrite = True

    # --- the loop ---------------------------------------------------------------------

    def add(self, messages: Iterable[AnyMessage]) -> None:
        """Append messages, as they are now."""
        # Encoded and decoded: a message that cannot be stored is refused before it is
        # added, and what the caller changes in it later is not saved.
        new = [
            cast("Stored", codec.decode(codec.encode(accepted(message), "message")))
            for message in messages
        ]
        self.messages += new
        self.has_unsaved = self.has_unsaved or bool(new)
        self.tally = self.tally.after(new)

    def answer(self, answered: AnyCall, content: object, *, is_error: bool) -> None:
        """Append the result of a call, in the dialect of the call."""
        call = self._called(self.call_of(answered).id)
        if call.id not in self.tally.open:
            raise Conflict(
                f"call {call.id!r} is answered already; a new result needs a new call",
                code="call_answered",
                thread=self.thread,
            )
        fields = self.messages[call.position]
        result = result_of(fields, call, content, is_error=is_error)
        if not is_block(result):
            self.add([cast("Stored", result)])
            return
        joins = self._ends_with_results()
        self.add([cast("Stored", new_host(fields, [result]))])
        if joins:
            self._join_last()

    def _ends_with_results(self) -> bool:
        last = self.messages[-1]
        return last.get("role") == "user" and role_of(last) == "tool"

    def _join_last(self) -> None:
        """Join the last two messages: Anthropic wants all results in one."""
        last, new = self.messages[-2:]
        parts = [*parts_of(last["content"]), *parts_of(new["content"])]
        self.messages[-2:] = [{**last, "content": parts}]
        self.tally = replace(self.tally, messages=len(self.messages))
        known = max([self.stored, *(attempt.count for attempt in self.attempts)])
        self.rewrite = self.rewrite or len(self.messages) <= known

    def used(self, usage: Mapping[str, Any] | None) -> dict[str, Any]:
        """The sum of the usage so far and ``usage``."""
        total = _sum(self.usage, {} if usage is None else usage, "usage")
        codec.encode(total, "usage")
        return total

    def wish(self, kind: Happening, tool: str | None = None) -> Wish | None:
        """What the strategy wants when something happens."""
        event = Event(
            kind=kind,
            at=self.clock(),
            iteration=self.iteration,
            saved_at=self.saved_at,
            saved_iteration=self.saved_iteration,
            open_calls=len(self.tally.open),
            tool=tool,
        )
        return self.setup.save.wants(event)

    def open_calls(self) -> list[TranscriptCall]:
        """The calls that have no result yet."""
        return open_calls(self.messages) if self.tally.open else []

    def call_of(self, call: AnyCall) -> TranscriptCall:
        """A call in any form as a `TranscriptCall`."""
        if isinstance(call, TranscriptCall):
            return call
        if isinstance(call, ToolCall):
            return TranscriptCall(call.id, call.name, decoded(call.arguments))
        if isinstance(call, str):
            return self._called(call)
        found = call_in(call)
        if found is None:
            raise Unstorable("call", f"is no tool call with an id: {call!r}")
        return found

    def _called(self, id_: str) -> TranscriptCall:
        for position in reversed(range(len(self.messages))):
            for call in calls_of(self.messages[position], position):
                if call.id == id_:
                    return call
        raise NotFound(
            f"no message calls {id_!r}; pass the reply to llm_response() first",
            thread=self.thread,
            reference=id_,
        )

    def journaled(self, call: TranscriptCall) -> JournaledCall:
        """A call with its key in the journal."""
        key = key_of(self.messages, call.id)
        return JournaledCall(thread=self.thread, start=self.start, key=key, call=call)

    # --- saving -----------------------------------------------------------------------

    @property
    def start(self) -> Start:
        """How the conversation begins if it does not exist."""
        owner, agent = self.setup.owner, self.setup.agent
        return Start(
            kind=KIND,
            owner=None if owner is None else checked_name(owner, "owner"),
            agent=None if agent is None else checked_name(agent, "agent"),
        )

    @property
    def pending(self) -> int:
        """How many messages are not saved yet."""
        return max(0, len(self.messages) - self.stored)

    @property
    def has_news(self) -> bool:
        """Whether there are messages to save."""
        return self.pending > 0 or self.rewrite or self.checkpoint is None

    @property
    def is_saved(self) -> bool:
        """Whether there is nothing to save."""
        return not self.has_news and self._run_text() == self.saved_run

    @property
    def run(self) -> dict[str, Any]:
        """What is saved beside the messages for resuming."""
        known = {
            "iteration": self.iteration,
            "usage": self.usage,
            "metadata": self.metadata,
        }
        return self.other | {name: value for name, value in known.items() if value}

    def _run_text(self) -> bytes:
        return codec.encode(self.run, "run")

    def batch(
        self,
        *,
        kind: str = "save",
        label: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
    ) -> Batch:
        """What a save has to write now; it is counted as an attempt."""
        how = save.options(
            label=label,
            tags=tags,
            metadata=metadata,
            kind=kind,
            id=self.new_id(),
            start=self.start,
        )
        assert how.id is not None
        batch = Batch(
            conversation=self.setup.id,
            start=self.start,
            at=self.clock(),
            messages=list(self.messages),
            stored=self.stored,
            rewrite=self.rewrite,
            before=self.before,
            tally=self.tally,
            run=cast("dict[str, Any]", codec.decode(self._run_text())),
            how=how,
            attempts=self.attempts,
        )
        self.attempts = (*self.attempts, SaveAttempt(how.id, len(batch.messages)))
        return batch

    def saved(self, batch: Batch, checkpoint: Checkpoint) -> Checkpoint:
        """Remember that a batch was saved."""
        self.stored, self.attempts = len(batch.messages), ()
        self.rewrite = self.has_unsaved = False
        self.before, self.checkpoint = transcript_of(checkpoint), checkpoint
        self.saved_at = checkpoint.saved_at
        self.saved_iteration = batch.run.get("iteration", 0)
        self.saved_run = codec.encode(batch.run, "run")
        return checkpoint

    def given_back(self) -> list[AnyMessage]:
        """All messages as they were given."""
        return [restored(message) for message in self.messages]


_RUN = frozenset({"iteration", "usage", "metadata"})


def _sum(total: Mapping[str, Any], more: Any, path: str) -> dict[str, Any]:
    """Numbers added by name; of other values the last is kept."""
    if not isinstance(more, Mapping):
        raise Unstorable(path, "must be a mapping of numbers; pass .model_dump() or so")
    found = dict(total)
    for name, value in cast("Mapping[str, Any]", more).items():
        old = found.get(name)
        if isinstance(value, Mapping):
            old = cast("dict[str, Any]", old) if isinstance(old, dict) else {}
            found[name] = _sum(old, value, f"{path}.{name}")
        elif _is_number(value) and _is_number(old):
            found[name] = _added(old, value, f"{path}.{name}")
        else:
            found[name] = value
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _added(old: Any, new: Any, path: str) -> Any:
    try:
        return old + new
    except TypeError:
        text = f"cannot add a {type(new).__name__} to a {type(old).__name__}"
        raise Unstorable(path, f"{text}; always give the same type") from None
