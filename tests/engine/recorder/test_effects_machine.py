"""Calls, kills, rewinds, forks, restores and undoing against a model of the world.

The world counts every effect. The model knows for each line which effects it has, and
from that whether the next call has to run, to take an effect over, or to be refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import holdfast
from holdfast import Conflict, Retention
from holdfast.strategy import after_reply, after_tool_batch, never
from holdfast.testing import raises

PEOPLE = ("bob", "eve")
THREADS = ("main", "f1", "f2", "f3")
STRATEGIES = (never(), after_tool_batch(), after_reply())


class Killed(BaseException):
    """The process died here."""


@dataclass
class Payment:
    """An effect: to whom, how often it really happened, and what is known of it."""

    ref: str
    to: str
    times: int = 0
    is_known: bool = True
    is_undone: bool = False
    may_repeat: bool = False


@dataclass
class Line:
    """What the model knows of a thread: its effects, in order, and its policy."""

    effects: tuple[str, ...] = ()
    policy: str = "replay"
    # A call that began and whose end was never recorded: its id and its payment.
    unknown: dict[str, str] = field(default_factory=dict)


class Effects(RuleBasedStateMachine):
    """Several workers on the forks of one conversation."""

    def __init__(self) -> None:
        super().__init__()
        self.store = holdfast.open(":memory:")
        self.payments: dict[str, Payment] = {}
        self.lines: dict[str, Line] = {"main": Line()}
        # What the line of each checkpoint had when it was saved.
        self.saved: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {}
        self.pinned: dict[str, dict[str, str]] = {}
        self.workers: dict[str, Any] = {}
        self.calls = 0
        self.dies: str | None = None
        self.store.agents.save(holdfast.Agent(id="a"))
        run = self.open("main")
        run.add({"role": "user", "content": "Pay."})
        self.note(run.save(), "main")

    def teardown(self) -> None:
        self.store.close()

    # --- the world --------------------------------------------------------------------

    @property
    def tools(self) -> dict[str, Any]:
        @holdfast.once(undo=self.cancel)
        def pay(to: str, ref: str) -> str:
            if self.dies == "before":
                raise Killed
            self.payments[ref].times += 1
            if self.dies == "after":
                raise Killed
            return ref

        return {"pay": pay}

    def cancel(self, effect: holdfast.Effect) -> None:
        self.payments[effect.result].is_undone = True

    # --- workers ----------------------------------------------------------------------

    def open(self, name: str, save: Any = STRATEGIES[1]) -> Any:
        run = self.store.conversations.recorder(
            name, agent="a", tools=self.tools, save=save
        )
        self.workers[name] = run
        return run

    def note(self, checkpoint: holdfast.Checkpoint, name: str) -> None:
        """Remember what a checkpoint's line had, if it is new."""
        line = self.lines[name]
        self.saved.setdefault(checkpoint.id, (line.effects, dict(line.unknown)))

    def note_new(self, name: str) -> None:
        checkpoint = self.workers[name].checkpoint
        if checkpoint is not None:
            self.note(checkpoint, name)

    def left_behind(self, name: str, to: str) -> list[Payment]:
        """The effects that the next equal call of a line may take over, in order."""
        mine = set(self.lines[name].effects)
        return [
            payment
            for payment in self.payments.values()
            if payment.to == to and payment.ref not in mine and not payment.is_undone
        ]

    def ask(self, name: str, to: str) -> tuple[Any, str, str]:
        """The model asks for a payment with a new id and a new reference."""
        self.calls += 1
        ref, call = f"ref{self.calls}", f"call-{self.calls}"
        run = self.workers[name]
        arguments = json.dumps({"to": to, "ref": ref})
        function = {"name": "pay", "arguments": arguments}
        made = {"id": call, "type": "function", "function": function}
        run.llm_response({"role": "assistant", "content": None, "tool_calls": [made]})
        self.note_new(name)
        return run, call, ref

    def have(self, name: str, ref: str) -> None:
        """A line has an effect; so has the checkpoint that has the call already."""
        line, run = self.lines[name], self.workers[name]
        line.effects += (ref,)
        if not run.pending:
            self.saved[run.checkpoint.id] = (line.effects, dict(line.unknown))

    # --- rules ------------------------------------------------------------------------

    names = st.sampled_from(THREADS)

    def has(self, name: str) -> bool:
        return name in self.lines

    @rule(name=names, to=st.sampled_from(PEOPLE))
    def pay(self, name: str, to: str) -> None:
        if not self.has(name) or self.lines[name].unknown:
            return
        line, behind = self.lines[name], self.left_behind(name, to)
        run, call, ref = self.ask(name, to)
        self.payments[ref] = Payment(ref, to)
        expected = self.expected(line, behind)
        if expected not in {"run", "replay"}:
            with raises(Conflict, expected):
                run.call(call)
            result = "refused"
        else:
            result = run.call(call)
            assert result == (behind[0].ref if expected == "replay" else ref)
            self.have(name, result)
        if expected != "run":
            del self.payments[ref]
        run.tool_result(call, result)
        self.note_new(name)

    def expected(self, line: Line, behind: list[Payment]) -> str:
        if line.policy == "deny":
            return "effect_denied"
        if line.policy == "run" or not behind:
            return "run"
        if not behind[0].is_known:
            return "call_interrupted"
        return "effect_happened" if line.policy == "refuse" else "replay"

    @rule(
        name=names,
        to=st.sampled_from(PEOPLE),
        dies=st.sampled_from(["before", "after"]),
    )
    def pay_and_die(self, name: str, to: str, dies: str) -> None:
        if not self.has(name) or self.lines[name].unknown:
            return
        line, behind = self.lines[name], self.left_behind(name, to)
        if self.expected(line, behind) != "run":
            return
        run, call, ref = self.ask(name, to)
        self.payments[ref] = Payment(ref, to, is_known=False)
        self.dies = dies
        try:
            run.call(call)
        except Killed:
            pass
        finally:
            self.dies = None
        line.unknown[call] = ref
        self.have(name, ref)
        assert self.open(name).open_calls == []

    @rule(name=names)
    def decide(self, name: str) -> None:
        """A person checks the payments and settles the interrupted calls."""
        if not self.has(name):
            return
        run, line = self.open(name), self.lines[name]
        assert {call.id for call in run.interrupted()} == set(line.unknown)
        for call, ref in list(line.unknown.items()):
            payment = self.payments[ref]
            if payment.times:
                assert run.resolve(call, ref) == ref
            elif line.policy == "deny":
                return
            else:
                assert run.call(call, again=True) == ref
                run.tool_result(call, ref)
            payment.is_known = True
            self.forget_unknown(ref)
        self.note_new(name)

    def forget_unknown(self, ref: str) -> None:
        for line in self.lines.values():
            line.unknown = {c: r for c, r in line.unknown.items() if r != ref}
        for id_, (effects, unknown) in self.saved.items():
            known = {c: r for c, r in unknown.items() if r != ref}
            self.saved[id_] = (effects, known)

    @rule(name=names, which=st.integers(0, 50), outside=st.booleans())
    def rewind(self, name: str, which: int, outside: bool) -> None:
        if not self.has(name):
            return
        thread = self.store.conversations.thread(name)
        targets = [
            c for c in thread.history(limit=None, all=True) if c.id in self.saved
        ]
        targets = [c for c in targets if not self.saved[c.id][1]]
        if not targets:
            return
        target = targets[which % len(targets)]
        if outside:
            thread.rewind(target)
            self.drop_pending(name)
        else:
            self.workers[name].resume(at=target, discard=True)
        line = self.lines[name]
        effects, unknown = self.saved[target.id]
        line.effects, line.unknown = effects, dict(unknown)

    def drop_pending(self, name: str) -> None:
        self.open(name).resume(discard=True)

    @rule(name=names)
    def save(self, name: str) -> None:
        if self.has(name):
            self.note(self.workers[name].save(label="here"), name)

    @rule(name=names, strategy=st.sampled_from(STRATEGIES))
    def restart(self, name: str, strategy: Any) -> None:
        """The process ends without a word, and another one goes on."""
        if self.has(name):
            before = said(self.workers[name])
            assert said(self.open(name, strategy)) == before

    @rule(
        name=names,
        new=names,
        policy=st.sampled_from([None, "replay", "refuse", "run", "deny"]),
    )
    def fork(self, name: str, new: str, policy: Any) -> None:
        if not self.has(name) or self.has(new):
            return
        thread = self.store.conversations.thread(name)
        head = thread.head
        if head is None or head.id not in self.saved or self.saved[head.id][1]:
            return
        thread.fork(f"conversation:{new}", effects=policy)
        effects, unknown = self.saved[head.id]
        inherited = policy or self.lines[name].policy
        self.lines[new] = Line(effects, inherited, dict(unknown))
        self.open(new)

    @rule(name=names)
    def undo_what_was_left_behind(self, name: str) -> None:
        if not self.has(name):
            return
        held = {ref for line in self.lines.values() for ref in line.effects}
        free = [p for p in self.payments.values() if p.ref not in held]
        due = {p.ref for p in free if p.is_known and not p.is_undone}

        found = self.workers[name].compensate()

        assert {effect.result for effect in found.undone} == due
        assert found.kept == ()

    @precondition(lambda self: len(self.saved) > 3)
    @rule()
    def prune(self) -> None:
        self.store.prune(Retention(last=1, labelled=False))

    @rule()
    def checkpoint_the_agent(self) -> None:
        heads = {
            name: head.id
            for name in self.lines
            if (head := self.store.conversations.thread(name).head)
        }
        if any(id_ not in self.saved or self.saved[id_][1] for id_ in heads.values()):
            return
        self.pinned[self.store.agents.checkpoint("a").id] = heads

    @precondition(lambda self: self.pinned)
    @rule(which=st.integers(0, 50))
    def restore_the_agent(self, which: int) -> None:
        id_, heads = list(self.pinned.items())[which % len(self.pinned)]
        if heads.keys() != self.lines.keys():
            return
        for name in self.lines:
            self.drop_pending(name)
        self.store.agents.restore("a", id_)
        for name, head in heads.items():
            effects, unknown = self.saved[head]
            line = self.lines[name]
            line.effects, line.unknown = effects, dict(unknown)
            self.open(name)

    # --- what always holds ------------------------------------------------------------

    @invariant()
    def nothing_happened_twice_or_was_lost(self) -> None:
        for payment in self.payments.values():
            assert payment.times == 1 or (not payment.is_known and payment.times == 0)

    @invariant()
    def the_ledger_knows_every_line(self) -> None:
        for name, line in self.lines.items():
            found = self.store.conversations.thread(name).effects()
            counted = [e for e in found if e.status == "completed"]
            known = [r for r in line.effects if self.payments[r].is_known]
            assert [e.result for e in counted] == known


def said(run: Any) -> list[Any]:
    """The transcript without notes about what other forks have done since."""
    return [m for m in run.messages if not str(m["content"]).startswith("Note:")]


TestEffects = Effects.TestCase
