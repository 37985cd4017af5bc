"""Several workers on the same threads, against a model of the world.

Each worker has a store of its own on one file. Another worker acts between any two of
its steps, and also while one of its tools or undos runs. The world counts payments and
cancellations. A line has the payments of the calls in its transcript: the model reads
them there, the store has to know them by its ledger.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import holdfast
from holdfast import Conflict, Retention
from holdfast.strategy import after_reply, after_tool_batch, never
from support.effort import THOROUGH

PEOPLE = ("bob", "eve")
THREADS = ("main", "fork")
WORKERS = 3
ANSWER = re.compile(r"r\d+|refused")
STRATEGIES = (never(), after_tool_batch(), after_reply())
# What another worker does while a tool or an undo of one runs.
MEANWHILE = (
    "ask",
    "call",
    "answer",
    "save",
    "resume",
    "reopen",
    "rewind",
    "compensate",
    "decide",
    "title",
)
acts = st.tuples(
    st.sampled_from(MEANWHILE), st.integers(0, WORKERS - 1), st.integers(0, 50)
)
others = st.lists(acts, max_size=3)


class Killed(BaseException):
    """The process died here."""


@dataclass(eq=False)
class Payment:
    """One run of the tool, from its begin on."""

    call: str
    to: str
    receipt: str
    happened: bool = False
    is_known: bool = False
    is_running: bool = True
    # Another attempt was made in its place, knowingly.
    is_settled: bool = False
    cancelled: int = 0
    # Its undo began and did not end.
    is_undoing: bool = False

    @property
    def is_undone(self) -> bool:
        return self.cancelled > 0 and not self.is_undoing

    @property
    def is_in_force(self) -> bool:
        return not self.is_undone and not self.is_settled


@dataclass(eq=False)
class Worker:
    """A recorder with a store of its own."""

    store: holdfast.Store
    name: str = "main"
    run: Any = None
    # The version of the thread that it has loaded or written.
    seen: int = 0
    results: dict[str, str] = field(default_factory=dict)
    is_busy: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a step ended: with a result, refused with a code, or by a kill."""

    how: str
    result: Any = None


def outcome(step: Any, *arguments: Any, **named: Any) -> Outcome:
    try:
        return Outcome("returned", step(*arguments, **named))
    except Conflict as conflict:
        return Outcome("refused", conflict.code)
    except Killed:
        return Outcome("died")


@dataclass
class Plan:
    """What happens while a tool or an undo runs."""

    before: list[tuple[str, int, int]] = field(default_factory=list)
    after: list[tuple[str, int, int]] = field(default_factory=list)
    dies: str | None = None


class Workers(RuleBasedStateMachine):
    """Three workers on a conversation and its fork."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.url = os.path.join(self.folder.name, "store.db")
        self.stores: list[holdfast.Store] = []
        self.observer = self.open_store()
        self.observer.agents.save(holdfast.Agent(id="a"))
        self.payments: list[Payment] = []
        self.holds: dict[str, list[Payment]] = {}
        self.versions: dict[str, int] = {"main": 0}
        self.pinned: dict[str, set[str]] = {}
        self.asked = 0
        self.plans: list[Plan] = []
        self.workers = [Worker(self.open_store()) for _ in range(WORKERS)]
        for worker in self.workers:
            self.open(worker, STRATEGIES[1])
        self.workers[0].run.add({"role": "user", "content": "Pay."})
        self.workers[0].run.save()
        for worker in self.workers:
            self.open(worker, STRATEGIES[1])

    def open_store(self) -> holdfast.Store:
        store = holdfast.open(self.url, durability="normal")
        self.stores.append(store)
        return store

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.folder.cleanup()

    # --- the world --------------------------------------------------------------------

    def tools(self) -> dict[str, Any]:
        @holdfast.once(undo=self.cancel)
        def pay(to: str, ref: str) -> str:
            plan = self.plans.pop() if self.plans else Plan()
            payment = Payment(ref, to, f"r{len(self.payments)}")
            self.payments.append(payment)
            self.holds.setdefault(ref, []).append(payment)
            self.meanwhile(plan.before)
            if plan.dies != "before":
                payment.happened = True
            self.meanwhile(plan.after)
            payment.is_running = False
            if plan.dies:
                raise Killed
            return payment.receipt

        return {"pay": pay}

    def cancel(self, effect: holdfast.Effect) -> None:
        [payment] = [p for p in self.payments if p.receipt == effect.result]
        plan = self.plans.pop() if self.plans else Plan()
        assert payment.cancelled == 0, "undone twice"
        assert payment not in self.held(), "undone although a line has it"
        payment.is_undoing = True
        holders = self.holders(payment)
        self.meanwhile(plan.before)
        payment.cancelled += 1
        self.meanwhile(plan.after)
        if plan.dies:
            raise Killed
        assert self.holders(payment) == holders, "taken over while it was undone"
        payment.is_undoing = False

    def meanwhile(self, acts: Iterable[tuple[str, int, int]]) -> None:
        for verb, number, which in acts:
            worker = self.workers[number]
            if worker.is_busy:
                continue
            outer, self.plans = self.plans, []
            getattr(self, f"to_{verb}")(worker, which)
            self.plans = outer

    def holders(self, payment: Payment) -> list[str]:
        return [call for call, held in self.holds.items() if payment in held]

    # --- the model --------------------------------------------------------------------

    def payments_of(self, messages: Iterable[Any]) -> list[Payment]:
        """What a line has: the payments of the calls in its transcript."""
        return [p for call in calls_in(messages) for p in self.holds.get(call, ())]

    def held(self) -> set[Payment]:
        """What the stored lines of all threads have."""
        return {
            payment
            for name in self.versions
            for payment in self.payments_of(self.fresh(name).messages)
        }

    def recorded(self) -> list[str]:
        """The receipts that the ledger has."""
        thread = self.observer.conversations.thread("main")
        found = [*thread.effects(), *thread.effects(left_behind=True)]
        return [e.result for e in found if e.status == "completed" and not e.replays]

    def fresh(self, name: str) -> Any:
        return self.observer.conversations.recorder(name, tools=self.tools())

    def expected(self, worker: Worker, call: str, to: str) -> tuple[str, str]:
        """What the next call has to do: run, return a receipt, or be refused."""
        own = [p for p in self.holds.get(call, ()) if p.is_in_force]
        mine = self.payments_of(worker.run.messages)
        same = [p for p in self.payments if p.to == to and p.is_in_force]
        behind = [p for p in same if p not in mine]
        for payment in (*own[-1:], *behind[:1]):
            # A worker that lost its line does not know that its own call is undone.
            if payment.is_known and (own or not payment.is_undoing):
                return "return", payment.receipt
            return "refuse", "call_interrupted"
        return "run", ""

    # --- steps ------------------------------------------------------------------------

    def open(self, worker: Worker, strategy: Any) -> None:
        worker.run = worker.store.conversations.recorder(
            worker.name, agent="a", tools=self.tools(), save=strategy
        )
        self.is_loaded(worker)

    def is_loaded(self, worker: Worker) -> None:
        worker.results, worker.seen = {}, self.versions[worker.name]

    def write(self, worker: Worker, step: Any, *arguments: Any, **named: Any) -> bool:
        """A step that writes; it may be refused only if others wrote since."""
        before = self.versions[worker.name]
        ended = outcome(step, *arguments, **named)
        if ended.how == "returned":
            self.is_written(worker, before)
            return True
        assert ended == Outcome("refused", "transcript_moved")
        assert worker.seen != before, "refused, and no other worker wrote"
        return False

    def is_current(self, worker: Worker) -> bool:
        return worker.seen == self.versions[worker.name]

    def is_written(self, worker: Worker, before: int) -> None:
        if worker.seen == self.versions[worker.name] == before:
            worker.seen += 1
        self.versions[worker.name] += 1

    def to_ask(self, worker: Worker, which: int) -> None:
        """The model asks for a payment with a new id and a new reference."""
        self.to_answer(worker, which)
        if unanswered(worker.run.messages):
            return
        self.asked += 1
        call = f"call-{self.asked}"
        given = json.dumps({"to": PEOPLE[which % len(PEOPLE)], "ref": call})
        function = {"name": "pay", "arguments": given}
        made = {"id": call, "type": "function", "function": function}
        reply = {"role": "assistant", "content": None, "tool_calls": [made]}
        self.write(worker, worker.run.llm_response, reply)

    def to_call(self, worker: Worker, which: int) -> None:
        self.call(worker, Plan())

    def call(self, worker: Worker, plan: Plan) -> None:
        open_ = worker.run.open_calls
        if not open_ or worker.is_busy:
            return
        call, to = open_[0].id, open_[0].arguments["to"]
        kind, expected = self.expected(worker, call, to)
        made = len(self.payments)
        # The first call of a worker claims what another one has recorded.
        before = self.versions[worker.name]
        self.is_written(worker, before)
        ended = self.during(worker, plan, worker.run.call, call)
        if kind == "run" and ended.how != "refused":
            payment = self.payments[made]
            payment.is_known |= ended.how == "returned"
            expected = payment.receipt
        else:
            assert len(self.payments) == made, "ran although it must not"
        if ended == Outcome("refused", "transcript_moved"):
            assert worker.seen != before + 1, "refused, and no other worker wrote"
        elif ended.how == "refused":
            assert (kind, expected) == ("refuse", ended.result)
            worker.results[call] = "refused"
        elif ended.how == "returned":
            assert ended.result == expected
            self.take(call, expected)
            worker.results[call] = expected

    def during(self, worker: Worker, plan: Plan, step: Any, *arguments: Any) -> Outcome:
        """A step that runs a tool or an undo, in which others act."""
        self.plans, worker.is_busy = [plan], True
        ended = outcome(step, *arguments)
        self.plans, worker.is_busy = [], False
        if ended.how == "died":
            self.open(worker, STRATEGIES[1])
        return ended

    def take(self, call: str, receipt: str) -> None:
        """A call has a payment now, its own or that of another call."""
        held = self.holds.setdefault(call, [])
        if all(p.receipt != receipt for p in held):
            held += [p for p in self.payments if p.receipt == receipt]

    def to_answer(self, worker: Worker, which: int) -> None:
        for call in sorted(unanswered(worker.run.messages)):
            if call in worker.results:
                self.write(
                    worker, worker.run.tool_result, call, worker.results.pop(call)
                )

    def to_save(self, worker: Worker, which: int) -> None:
        self.write(worker, worker.run.save, label="here")

    def to_resume(self, worker: Worker, which: int) -> None:
        worker.run.resume(discard=True)
        self.versions[worker.name] += 1
        self.is_loaded(worker)

    def to_reopen(self, worker: Worker, which: int) -> None:
        """The process ends without a word, and another one goes on."""
        names = list(self.versions)
        worker.name = names[which % len(names)]
        self.open(worker, STRATEGIES[which % len(STRATEGIES)])

    def to_title(self, worker: Worker, which: int) -> None:
        worker.store.conversations.update(worker.name, title=f"Title {which}")
        self.versions[worker.name] += 1

    def to_rewind(self, worker: Worker, which: int) -> None:
        thread = worker.store.conversations.thread(worker.name)
        targets = list(thread.history(limit=None, all=True))
        target = targets[which % len(targets)]
        if unanswered(thread.load(target)["messages"]):
            return
        if which % 2:
            thread.rewind(target)
            self.versions[worker.name] += 1
        else:
            worker.run.resume(at=target, discard=True)
            self.versions[worker.name] += 1
            self.is_loaded(worker)

    def to_decide(self, worker: Worker, which: int) -> None:
        """A person checks the payments and settles the interrupted calls."""
        for call in worker.run.interrupted():
            [payment] = [p for p in self.holds[call.id] if not p.is_known][-1:]
            if payment.happened:
                is_done = self.write(
                    worker, worker.run.resolve, call.id, payment.receipt
                )
                # A worker that lost the race is refused before or after the journal.
                payment.is_known = is_done or payment.receipt in self.recorded()
            elif not payment.is_running and self.is_current(worker):
                # Of a worker that lost, the new attempt may belong to its line only.
                self.again(worker, call.id, payment)

    def again(self, worker: Worker, call: str, payment: Payment) -> None:
        count = len(self.payments)
        worker.is_busy = True
        self.write(worker, worker.run.call, call, again=True)
        worker.is_busy = False
        for made in self.payments[count:]:
            made.is_known = True
            payment.is_settled = True

    def to_compensate(self, worker: Worker, which: int) -> None:
        self.compensate(worker, Plan())

    def compensate(self, worker: Worker, plan: Plan) -> None:
        if worker.is_busy:
            return
        held = self.held().union(self.payments_of(worker.run.messages))
        due = {
            p.receipt
            for p in self.payments
            if p.is_known and p.is_in_force and not p.is_undoing and p not in held
        }
        ended = self.during(worker, plan, worker.run.compensate)
        if ended.how == "returned":
            undone = {effect.result for effect in ended.result.undone}
            assert undone <= due
            assert undone == due or plan.before or plan.after
            assert ended.result.kept == ()

    # --- rules ------------------------------------------------------------------------

    numbers = st.integers(0, WORKERS - 1)
    choices = st.integers(0, 50)

    @rule(number=numbers, verb=st.sampled_from(MEANWHILE), which=choices)
    def acts(self, number: int, verb: str, which: int) -> None:
        getattr(self, f"to_{verb}")(self.workers[number], which)

    @rule(number=numbers, which=choices, before=others, after=others)
    def pays_while_others_act(
        self, number: int, which: int, before: Any, after: Any
    ) -> None:
        worker = self.workers[number]
        self.to_ask(worker, which)
        self.call(worker, Plan(before, after))

    @rule(
        number=numbers,
        which=choices,
        before=others,
        after=others,
        dies=st.sampled_from(["before", "after"]),
    )
    def dies_while_others_act(
        self, number: int, which: int, before: Any, after: Any, dies: str
    ) -> None:
        worker = self.workers[number]
        self.to_ask(worker, which)
        self.call(worker, Plan(before, after, dies))

    @rule(number=numbers, before=others, after=others, dies=st.booleans())
    def undoes_while_others_act(
        self, number: int, before: Any, after: Any, dies: bool
    ) -> None:
        plan = Plan(before, after, "after" if dies else None)
        self.compensate(self.workers[number], plan)

    @precondition(lambda self: len(self.versions) < len(THREADS))
    @rule(number=numbers)
    def forks(self, number: int) -> None:
        thread = self.workers[number].store.conversations.thread("main")
        if not unanswered(thread.load()["messages"]):
            thread.fork(f"conversation:{THREADS[1]}")
            self.versions[THREADS[1]] = 0

    @rule()
    def prunes(self) -> None:
        self.observer.prune(Retention(last=1, labelled=False))

    @rule()
    def checkpoints_the_agent(self) -> None:
        for name in self.versions:
            thread = self.observer.conversations.thread(name)
            if unanswered(thread.load()["messages"]):
                return
        id_ = self.observer.agents.checkpoint("a").id
        self.pinned[id_] = set(self.versions)

    @precondition(lambda self: self.pinned)
    @rule(which=choices)
    def restores_the_agent(self, which: int) -> None:
        id_, names = list(self.pinned.items())[which % len(self.pinned)]
        if names == self.versions.keys():
            self.observer.agents.restore("a", id_)
            for name in names:
                self.versions[name] += 1

    # --- what always holds ------------------------------------------------------------

    @invariant()
    def no_effect_is_lost(self) -> None:
        """The ledger has each payment once, and as unknown only what died."""
        thread = self.observer.conversations.thread("main")
        found = [*thread.effects(), *thread.effects(left_behind=True)]
        own = [e for e in found if e.replays is None]
        known = sorted(e.result for e in own if e.status == "completed")
        assert known == sorted(p.receipt for p in self.payments if p.is_known)
        unknown = sorted(e.call_id for e in own if e.status == "unknown")
        assert unknown == sorted(p.call for p in self.payments if not p.is_known)

    @invariant()
    def every_line_has_the_payments_of_its_transcript(self) -> None:
        for name in self.versions:
            thread = self.observer.conversations.thread(name)
            found = [e for e in thread.effects() if e.status == "completed"]
            mine = self.payments_of(self.fresh(name).messages)
            known = sorted(p.receipt for p in mine if p.is_known)
            assert sorted(e.result for e in found) == known


def calls_in(messages: Iterable[Any]) -> list[str]:
    return [c["id"] for m in messages for c in m.get("tool_calls", ())]


def unanswered(messages: Iterable[Any]) -> set[str]:
    """The calls without a result, or with one that only says that it is not known."""
    listed = list(messages)
    results = [m for m in listed if "tool_call_id" in m]
    known = {m["tool_call_id"] for m in results if ANSWER.fullmatch(m["content"])}
    return set(calls_in(listed)) - known


TestWorkers = Workers.TestCase
# An example takes five times as long as one of the machine with one worker a thread.
TestWorkers.settings = settings(
    max_examples=max(5, settings().max_examples // 3), derandomize=not THOROUGH
)
