"""A recorder's memory: the transcript, the run, and how much of it is saved.

It decides and never waits; the sync and the async recorder work on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from holdfast._engine.effects.calls import JournaledCall
from holdfast._engine.effects.line import Line
from holdfast._engine.effects.lines import conversation_line
from holdfast._engine.files.draft import Scannable
from holdfast._engine.recorder.note import note_about
from holdfast._engine.recorder.storage import (
    Batch,
    LoadedConversation,
)
from holdfast._engine.recorder.usage import summed
from holdfast._engine.records.conversations import KIND, thread_of
from holdfast._engine.threads import save
from holdfast._engine.threads.pending import (
    NewPart,
    Part,
    Pending,
    is_same,
    transcript_of,
)
from holdfast._messages.attachments import Stored
from holdfast._messages.call_keys import count_answers, key_after, position_of
from holdfast._messages.dialects import (
    INTERRUPTED,
    NOT_MADE,
    is_block,
    new_host,
    note_like,
    result_of,
)
from holdfast._messages.loose import fields_of, parts_of
from holdfast._messages.repair import How, Repair, last_turn, repaired
from holdfast._messages.results import is_placeholder, with_result
from holdfast._messages.tally import Tally
from holdfast._messages.transcript import (
    TranscriptCall,
    answers_of,
    call_in,
    calls_of,
    decoded,
    open_calls,
    role_of,
    text_of,
)
from holdfast._port import Start
from holdfast._values import codec
from holdfast._values.records import Checkpoint, checked_name
from holdfast.effects import Declaration, Effect, Policy
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
    effects: Policy | None
    tools: Mapping[str, Callable[..., Any]]
    workspace: Scannable | None = None


class Recording:
    """A conversation being recorded."""

    def __init__(
        self, setup: RecorderSetup, clock: Callable[[], int], new_id: Callable[[], str]
    ) -> None:
        self.setup, self.clock, self.new_id = setup, clock, new_id
        self.thread = thread_of(setup.id)
        self.load(None)

    # --- loading ----------------------------------------------------------------------

    def load(self, found: LoadedConversation | None, *, tell: bool = True) -> None:
        """Begin with what is stored, or with nothing."""
        self.messages: list[Stored] = list(found.messages) if found else []
        self.stored = found.stored if found else 0
        self.before = found.before if found else None
        self.checkpoint = found.checkpoint if found else None
        self.record = found.record if found else None
        self.agent = found.record.agent if found else self.setup.agent
        self.left_behind = found.behind if found else ()
        # Whether stored messages were changed, so that all have to be written again.
        self.rewrite = found.is_rewritten if found else False
        self._load_pending(found)
        self._resume_run(found.run if found else {})
        # Counted from the last checkpoint and not from here: a program may make a
        # recorder for each turn.
        saved_run = found.saved_run if found else {}
        self.saved_iteration = _iteration_in(saved_run)
        self.saved_at = found.saved_at if found else self.clock()
        self._repair(found)
        self._set_system()
        self.tally = Tally().after(self.messages)
        # How many results each id has: calls are not looked for in all messages.
        self._answers = Counter(id_ for m in self.messages for id_ in answers_of(m))
        if tell and self.left_behind:
            self._note(self.left_behind)

    def _load_pending(self, found: LoadedConversation | None) -> None:
        pending = found.pending if found else Pending()
        parts = pending.parts
        self.next_id = self.new_id()
        # The id of a recorder whose messages this one has and did not claim yet.
        self.unclaimed = parts[-1].next_id if parts else None
        # Calls that other recorders made, and the id of the checkpoint they belong to.
        self.claimed_id = self.unclaimed
        self.claimed_calls = {
            c.id for p in parts for m in p.messages for c in calls_of(m)
        }
        self.kept_keys, self.obsolete = pending.keys, pending.obsolete
        self.passed_over = pending.passed_over
        # The first message that is neither in a checkpoint nor in the journal.
        self.unkept: int | None = len(self.messages) if parts else None
        if pending.is_moved:
            self.obsolete, self.kept_keys = (*self.obsolete, *self.kept_keys), ()
            self.unkept = 0 if self.rewrite else self.stored
        # Whether the caller added messages that only this recorder has.
        self.has_unsaved = False
        # How many messages a failed save had, which may have come after its commit.
        self.tried: int | None = None
        # Verdicts about the line of this recording.
        self.verdicts: dict[str, bool] = {}
        # The call asked for last, with what decided about it.
        self._journaled: tuple[object, JournaledCall] | None = None
        # The call that was looked for last, with the number of messages then.
        self._found: tuple[TranscriptCall, int] | None = None

    def _resume_run(self, run: Mapping[str, Any]) -> None:
        self.iteration = _iteration_in(run)
        self.usage: dict[str, Any] = dict(fields_of(run.get("usage")))
        self.metadata: dict[str, Any] = dict(fields_of(run.get("metadata")))
        self.other = {key: run[key] for key in run if key not in _RUN}
        self.saved_run = self._run_text()

    def _repair(self, found: LoadedConversation | None) -> None:
        """Answer what is known, and leave open what the loop has to decide."""
        self.repairs: tuple[Repair, ...] = ()
        # Calls of the last turn that a run before this one left without a result.
        self.left_open: frozenset[str] = frozenset()
        self.unknown: frozenset[str] = frozenset()
        if self.setup.repair is None or found is None:
            return
        if self.setup.repair == "interrupted":
            self.left_open = self._waiting(found.results)
            self.unknown = found.unknown & self.left_open
        mended = repaired(
            self.messages, self.setup.repair, found.results, self.left_open
        )
        self.repairs = mended.repairs
        if mended.repairs:
            before, self.messages = self.messages, cast("list[Stored]", mended.messages)
            self._changed_from(_first_difference(before, self.messages))

    def _waiting(self, results: Mapping[str, object]) -> frozenset[str]:
        start = last_turn(self.messages)
        waiting = (c for c in open_calls(self.messages) if c.position >= start)
        return frozenset(call.id for call in waiting if call.id not in results)

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
        self._changed_from(0)

    def _note(self, effects: Sequence[Effect]) -> None:
        """Tell the model what was done after this point, before its open calls."""
        place = len(self.messages)
        if self.tally.open:
            place = max(0, last_turn(self.messages))
        note = note_like(self.messages, note_about(effects))
        self.messages.insert(place, cast("Stored", note))
        self._changed_from(place)
        self.tally = Tally().after(self.messages)

    def _changed_from(self, position: int) -> None:
        """Remember that a message was added or changed."""
        if self.unkept is None or position < self.unkept:
            self.unkept = position
        self.rewrite = self.rewrite or position < max(self.stored, self.tried or 0)

    # --- the loop ---------------------------------------------------------------------

    def add(self, messages: Iterable[AnyMessage]) -> None:
        """Append messages, as they are now."""
        # Encoded and decoded: a message that cannot be stored is refused before it is
        # added, and what the caller changes in it later is not saved.
        new = [cast("Stored", stored_form(accepted(message))) for message in messages]
        for message in new:
            self._append(message)

    def _append(self, message: Stored) -> None:
        answers = answers_of(message)
        if not answers:
            self.go_on()
        self.claimed_calls.difference_update(call.id for call in calls_of(message))
        self.left_open = self.left_open.difference(answers)
        self.unknown = self.unknown.difference(answers)
        self._changed_from(len(self.messages))
        self.has_unsaved = True
        self.messages.append(message)
        self._answers.update(answers)
        self.tally = self.tally.after([message])

    def go_on(self) -> None:
        """Answer the calls that an earlier run left open, before anything follows them.

        The caller had its chance to decide about them.
        """
        if not self.left_open:
            return
        waiting, unknown = self.left_open, self.unknown
        self.left_open = frozenset()
        for call in open_calls(self.messages):
            if call.id in waiting:
                text = INTERRUPTED if call.id in unknown else NOT_MADE
                self._append_result(call, text, is_error=True)

    def answer(self, answered: AnyCall, content: object, *, is_error: bool) -> None:
        """Record the result of a call, in the dialect of the call.

        It is appended, or takes the place of a result that only said that the real one
        is not known.
        """
        call = self._called(self.call_of(answered).id)
        if call.id in self.tally.open:
            self._append_result(call, content, is_error=is_error)
        elif not self._is_answered_with(call, content, is_error=is_error):
            raise Conflict(
                f"call {call.id!r} is answered already; a new result needs a new call",
                code="call_answered",
                thread=self.thread,
            )

    def _is_answered_with(
        self, call: TranscriptCall, content: object, *, is_error: bool
    ) -> bool:
        """True if the call has this result, also by replacing a placeholder now."""
        fields = self.messages[call.position]
        result = stored_form(result_of(fields, call, content, is_error=is_error))
        for position in range(call.position + 1, len(self.messages)):
            message = self.messages[position]
            if call.id in answers_of(message):
                changed = with_result(message, call.id, result)
                if changed == message:
                    return True
                if not is_placeholder(message, call.id):
                    return False
                self.messages[position] = cast("Stored", changed)
                self._changed_from(position)
                return True
        return False

    def _append_result(
        self, call: TranscriptCall, content: object, *, is_error: bool
    ) -> None:
        fields = self.messages[call.position]
        result = result_of(fields, call, content, is_error=is_error)
        if not is_block(result):
            self.add([cast("Stored", result)])
            return
        joins = self._ends_with_results()
        self.add([cast("Stored", new_host(fields, [result]))])
        if joins:
            self._join_last()

    def has_placeholder(self, call: TranscriptCall) -> bool:
        """True if the only answer of the call says that its result is unknown."""
        if call.id in self.tally.open or not self._answers[call.id]:
            return False
        made = position_of(self.messages, call.id) or 0
        return any(is_placeholder(m, call.id) for m in self.messages[made:])

    def _ends_with_results(self) -> bool:
        last = self.messages[-1]
        return last.get("role") == "user" and bool(answers_of(last))

    def _join_last(self) -> None:
        """Join the last two messages: Anthropic wants all results in one, and first."""
        last, new = self.messages[-2:]
        parts = [*parts_of(last["content"]), *parts_of(new["content"])]
        parts.sort(key=lambda part: not is_block(fields_of(part)))
        self.messages[-2:] = [{**last, "content": parts}]
        self._changed_from(len(self.messages) - 1)
        self.tally = replace(self.tally, messages=len(self.messages))

    def used(self, usage: Mapping[str, Any] | None) -> dict[str, Any]:
        """The sum of the usage so far and ``usage``."""
        total = summed(self.usage, {} if usage is None else usage, "usage")
        codec.encode(total, "usage")
        return total

    def wish(self, kind: Happening, tool: str | None = None) -> Wish | None:
        """The kind of checkpoint to save after an event, ``None`` for none."""
        event = Event(
            kind=kind,
            at=self.clock(),
            iteration=self.iteration,
            saved_at=self.saved_at,
            saved_iteration=self.saved_iteration,
            open_calls=len(self.tally.open),
            tool=tool,
        )
        strategy = self.setup.save
        if kind == "tool_result" and self.setup.workspace and strategy.rules:
            return "save"  # what the tool did to the files belongs to its result
        return strategy.wants(event)

    def open_calls(self) -> list[TranscriptCall]:
        """The calls that have no result yet and may be made."""
        if not self.tally.open:
            return []
        return [c for c in open_calls(self.messages) if c.id not in self.unknown]

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

    def is_called(self, id_: str) -> bool:
        """True if a message of the transcript makes a call with this id."""
        return position_of(self.messages, id_) is not None

    def _called(self, id_: str) -> TranscriptCall:
        for position in reversed(range(len(self.messages))):
            for call in calls_of(self.messages[position], position):
                if call.id == id_:
                    self._found = call, len(self.messages)
                    return call
        raise NotFound(
            f"no message calls {id_!r}; pass the reply to llm_response() first",
            thread=self.thread,
            reference=id_,
        )

    def journaled(self, call: TranscriptCall, tool: Declaration) -> JournaledCall:
        """A call with its key in the journal, and the checkpoint it belongs to."""
        # Asked for again after every step that could change the answer: keep it while
        # these stay.
        basis = (
            call, tool, len(self.messages), self.unkept, self.stored, self.rewrite,
            self.checkpoint, self.claimed_id, self.next_id,
        )  # fmt: skip
        if self._journaled is None or self._journaled[0] != basis:
            self._journaled = basis, self._journal(call, tool)
        return self._journaled[1]

    def _journal(self, call: TranscriptCall, tool: Declaration) -> JournaledCall:
        made = self._position_of(call)
        later = () if made is None else self.messages[made:]
        before = self._answers[call.id] - count_answers(later, call.id)
        return JournaledCall(
            thread=self.thread,
            start=self.start,
            key=key_after(before, call.id),
            call=call,
            identity=tool.identity(call.name, call.arguments),
            anchor=self._anchor(made, call.id),
        )

    def _position_of(self, call: TranscriptCall) -> int | None:
        """The position of the newest message that makes a call."""
        if self._found is not None:
            found, count = self._found
            if found is call and count == len(self.messages):
                return call.position
        return position_of(self.messages, call.id)

    def _anchor(self, made: int | None, id_: str) -> str:
        """The first checkpoint that has a message, as far as it is known."""
        is_saved = made is not None and made < self.stored and not self.rewrite
        if self.checkpoint is not None and is_saved:
            return self.checkpoint.id
        if self.claimed_id is not None and id_ in self.claimed_calls:
            return self.claimed_id
        return self.next_id

    @property
    def line(self) -> Line:
        """The line that this recording continues."""
        next_id = self.unclaimed or self.next_id
        if self.checkpoint is not None:
            return conversation_line(self.checkpoint, next_id, self.verdicts)
        family = self.record.family if self.record else None
        return Line(family, None, next_id, self.verdicts)

    def policy(self, tool: Declaration) -> Policy:
        """The policy for a call that means an effect which was left behind."""
        ours = self.record.effects if self.record else None
        found = ours or self.setup.effects or tool.policy or "replay"
        return cast("Policy", found)

    # --- saving -----------------------------------------------------------------------

    @property
    def start(self) -> Start:
        """The properties of the conversation if it does not exist yet."""
        owner, agent = self.setup.owner, self.setup.agent
        return Start(
            kind=KIND,
            owner=None if owner is None else checked_name(owner, "owner"),
            agent=None if agent is None else checked_name(agent, "agent"),
        )

    @property
    def pending(self) -> int:
        """The number of messages that are not saved yet."""
        return max(0, len(self.messages) - self.stored)

    @property
    def is_retry(self) -> bool:
        """True if a save has failed; it may have failed after its commit."""
        return self.tried is not None

    @property
    def has_news(self) -> bool:
        """True if there are messages to save."""
        return self.pending > 0 or self.rewrite or self.checkpoint is None

    @property
    def is_saved(self) -> bool:
        """True if there is nothing to save."""
        return not self.has_news and self._run_text() == self.saved_run

    @property
    def run(self) -> dict[str, Any]:
        """The values beside the messages that are saved for resuming."""
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
        """The batch for a save now; it is counted as an attempt."""
        how = save.options(
            label=label,
            tags=tags,
            metadata=metadata,
            kind=kind,
            id=self.next_id,
            start=self.start,
        )
        how = replace(how, forget=(*self.kept_keys, *self.obsolete))
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
            is_retry=self.is_retry,
        )
        self.tried = len(batch.messages)
        return batch

    def part(self) -> NewPart:
        """The part to keep in the journal until the next save."""
        first = min(self.unkept or 0, len(self.messages))
        run = cast("dict[str, Any]", codec.decode(self._run_text()))
        return NewPart(
            thread=self.thread,
            start=self.start,
            head=self.checkpoint,
            number=len(self.kept_keys),
            part=Part(
                at=first,
                messages=self.messages[first:],
                run=run,
                next_id=self.next_id,
                after=(self.unclaimed or self.next_id) if self.kept_keys else None,
            ),
            forget=self.obsolete,
            claims=self.unclaimed,
        )

    def reserve(self, anchor: str | None) -> bool:
        """True if a part is needed so that the id of the next checkpoint stays."""
        if self.unclaimed is not None:
            return True
        if anchor != self.next_id or self.kept_keys or self.unkept is not None:
            return False
        self.unkept = len(self.messages)
        return True

    def kept(self, new: NewPart) -> None:
        """Remember that a part is in the journal."""
        self.claimed(new)
        self.obsolete, self.unkept, self.has_unsaved = (), None, False

    def claimed(self, new: NewPart) -> None:
        """Remember that a part, or an earlier form of it, is in the journal."""
        self.kept_keys, self.unclaimed = (*self.kept_keys, new.key), None

    def doubt(self, new: NewPart) -> None:
        """Remember that a part may be in the journal although an error was raised."""
        if self.unclaimed is not None:
            return  # it is tried again: a save must not come before it
        self.kept_keys = (*self.kept_keys, new.key)
        self.tried = len(self.messages)

    def follow(self, head: Checkpoint | None) -> bool:
        """Go on after another head, if it has the same messages.

        Other writers may change what stands beside them, such as the title.
        """
        if head is None or (self.checkpoint and head.id == self.checkpoint.id):
            return False
        if self.unclaimed is not None:
            return False  # the other recorder may have added to it
        if not is_same(transcript_of(head), self.before):
            return False
        self.checkpoint, self.verdicts = head, {}
        self.obsolete, self.kept_keys = (*self.obsolete, *self.kept_keys), ()
        self._changed_from(0 if self.rewrite else self.stored)
        return True

    def saved(self, batch: Batch, checkpoint: Checkpoint) -> Checkpoint:
        """Remember that a batch was saved."""
        self.stored = len(batch.messages)
        self.rewrite = self.has_unsaved = False
        self.tried = None
        self.unkept, self.kept_keys, self.obsolete = None, (), ()
        if self.checkpoint is None or checkpoint.parent != self.checkpoint.id:
            self.verdicts = {}  # others moved the head to one with the same messages
        self.before, self.checkpoint = transcript_of(checkpoint), checkpoint
        self.next_id, self.claimed_id = self.new_id(), None
        self.saved_at = checkpoint.saved_at
        self.saved_iteration = batch.run.get("iteration", 0)
        self.saved_run = codec.encode(batch.run, "run")
        return checkpoint

    def given_back(self) -> list[AnyMessage]:
        """All messages as they were given, in a form that providers accept.

        A call whose outcome is unknown is shown with a result that says so.
        """
        messages: Sequence[object] = self.messages
        if self.unknown:
            messages = repaired(messages, keep=self.left_open - self.unknown).messages
        return [restored(cast("Stored", message)) for message in messages]


def _iteration_in(run: Mapping[str, Any]) -> int:
    """The number of iterations in a run, which a program may have saved itself."""
    found: object = run.get("iteration")
    return found if type(found) is int else 0


def _first_difference(before: list[Stored], after: list[Stored]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    differing = (n for n, (old, new) in pairs if old is not new)
    return next(differing, min(len(before), len(after)))


def stored_form(value: object) -> Any:
    """A value as it is after it was stored and loaded."""
    return codec.decode(codec.encode(value, "message"))


_RUN = frozenset({"iteration", "usage", "metadata"})
