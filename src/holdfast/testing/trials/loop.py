"""An agent's loop is killed anywhere: no result is lost, and no call is made twice."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import holdfast
from holdfast import Conflict, Store
from holdfast._values.clock import uuid7
from holdfast.recorder import Recorder
from holdfast.strategy import after_reply, after_tool_batch, never
from holdfast.testing.faults import Call, kill
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.kills import ignore_repairs
from holdfast.testing.trials.scenario import problems_of
from holdfast.testing.trials.task import Target, Task, Trials
from holdfast.testing.trials.ways_back import (
    STORE,
    TALK,
    WAYS_BACK,
    begin,
    count_writes,
    discard,
    open_to_die,
)

# The payments of each reply of the model; both payments to Ann have to be made.
REPLIES = (("1-ann", "2-bob"), ("3-ann",), ("4-eve",))
REFS = [ref for refs in REPLIES for ref in refs]
BESIDE = "5-sue"
STRATEGIES = (never(), after_tool_batch(), after_reply())
MOMENTS = ("before", "after", "returned")
RIVALS = 2


@dataclass(frozen=True)
class Death:
    """The moment at which a process is killed: around a payment, or at a write."""

    write: int = sys.maxsize
    payment: str = ""
    moment: str = ""

    def __str__(self) -> str:
        return f"{self.moment} {self.payment}" if self.payment else f"at {self.write}"

    def may_come(self, payment: str, moment: str) -> None:
        """Called at the moments around a payment."""
        if (self.payment, self.moment) == (payment, moment):
            kill(Call("write", payment))


ALIVE = Death()


@dataclass
class World:
    """The file of payments that the tools write; no store can take one back."""

    path: str
    death: Death = ALIVE

    @property
    def tools(self) -> list[Callable[..., object]]:
        """The tools of the agent."""

        @holdfast.once(key=["to"])
        def pay(to: str, ref: str) -> str:
            self.death.may_come(ref, "before")
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(file, f"{ref}\n".encode())
            os.close(file)
            self.death.may_come(ref, "after")
            return f"{to} got {ref}"

        return [pay]

    def paid(self) -> Counter[str]:
        """The number of times that each payment was made."""
        if not os.path.exists(self.path):
            return Counter()
        with open(self.path) as file:
            return Counter(file.read().split())


def _asking(*refs: str) -> dict[str, object]:
    """A reply that calls for payments; each has the id of its call as its reference."""
    calls = [
        {
            "id": ref,
            "type": "function",
            "function": {
                "name": "pay",
                "arguments": json.dumps({"to": _payee(ref), "ref": ref}),
            },
        }
        for ref in refs
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _pay(run: Recorder, ref: str) -> object:
    """The model asks for a payment, and the loop makes it."""
    run.llm_response(_asking(ref))
    result = run.call(ref)
    run.tool_result(ref, result)
    return result


@dataclass
class Trial:
    """An agent in a store of its own."""

    target: Target
    number: int
    beside: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])

    @property
    def world(self) -> World:
        return World(self.target.path("world"))

    # --- in a child -------------------------------------------------------------------

    def live(self, death: Death, tell: Tell) -> None:
        """Run the loop from the point where it stopped, to its end or its death."""
        world = World(self.world.path, death)
        with open_to_die(self.target, death.write, tell) as store:
            save = STRATEGIES[self.number % len(STRATEGIES)]
            run = store.conversations.recorder(TALK, save=save, tools=world.tools)
            tell(["found", str(run.messages)])
            _decide(run, world, tell)
            for n, refs in enumerate(REPLIES):
                if f"question {n}" not in str(run.messages):
                    run.add({"role": "user", "content": f"question {n}"})
                    tell(["said", f"question {n}"])
                if refs[0] not in str(run.messages):
                    run.llm_response(_asking(*refs))
                    tell(["said", refs[-1]])
                store.conversations.thread(TALK).record(f"note {n}", n)
                tell(["noted", f"note {n}"])
                for call in run.open_calls:
                    result = run.call(call)
                    tell(["returned", call.id, result, run.call(call)])
                    death.may_come(call.id, "returned")
                    run.tool_result(call, result)
                    tell(["said", result])
            run.save()

    # --- what is wrong ----------------------------------------------------------------

    def wrong(self, death: Death, way: str) -> Iterator[str]:
        """Die, resume and finish; go a way back, and ask for all payments again."""
        with self.target.open(STORE, durability="normal") as store:
            begin(store)
        first = Child(partial(self.live, death))
        before = first.wait()
        # Some loops make fewer writes than the loop that was counted.
        if not first.was_killed and (first.status or death.payment):
            yield f"it ended with {first.status} instead of being killed"
        second = Child(partial(self.live, ALIVE))
        after = second.wait()
        if second.status != 0:
            yield f"resumed, it ended with {second.status}"
            return
        yield from _lost(before, after)
        store = self.target.open(STORE, cache_size=0)
        try:
            yield from self._unlike(store)
            store, name = WAYS_BACK[way](self.target, store, self._pay_beside)
            for ref, result in self.beside:
                if result != _result(ref):
                    yield f"{ref} is taken for another payment: {result}"
            yield from self._made_again(store, name)
            yield from problems_of(store)
        finally:
            store.close()

    def _unlike(self, store: Store) -> Iterator[str]:
        """Each payment not made once, and each result or note that is not stored."""
        paid = self.world.paid()
        yield from (
            f"{ref} was paid {paid[ref]} times" for ref in REFS if paid[ref] != 1
        )
        thread = store.conversations.thread(TALK)
        found = {effect.call_id: effect for effect in thread.effects()}
        text = str(store.conversations.load(TALK).messages)
        for ref in REFS:
            if ref not in found or found[ref].result != _result(ref):
                yield f"the ledger has {found.get(ref)} for {ref}"
            if _result(ref) not in text:
                yield f"the result of {ref} is not in the transcript"
        notes = {f"note {n}": n for n in range(len(REPLIES))}
        if notes.items() - thread.recorded_all(prefix="note").items():
            yield "a note is missing in the journal"

    def _pay_beside(self, store: Store, name: str) -> None:
        """Make one more payment to Sue."""
        ref = f"{5 + len(self.beside)}-sue"
        run = store.conversations.recorder(name, tools=self.world.tools)
        self.beside.append((ref, _pay(run, ref)))
        run.save()

    def _made_again(self, store: Store, name: str) -> Iterator[str]:
        """Each payment that is forgotten, or made again when the model repeats it."""
        made = list(self.world.paid())
        thread = store.conversations.thread(name)
        behind = {effect.call_id for effect in thread.effects(left_behind=True)}
        yield from (f"{ref} is forgotten" for ref in made if ref not in behind)
        run = store.conversations.recorder(name, tools=self.world.tools)
        for ref in made:
            result = _pay(run, f"again-{ref}")
            if result != _result(ref):
                yield f"{ref} is taken for another payment: {result}"
        again = [ref for ref in self.world.paid() if ref not in made]
        yield from (f"{ref} was paid" for ref in again)
        # A payment that was never made has to be made.
        _pay(run, "new-zoe")
        if not self.world.paid()["new-zoe"]:
            yield "a new payment was not made"


def _result(ref: str) -> str:
    return f"{_payee(ref)} got {ref}"


def _payee(ref: str) -> str:
    return ref.rpartition("-")[2]


def _decide(run: Recorder, world: World, tell: Tell) -> None:
    """Settle the interrupted calls: resolve those that were paid, repeat the others."""
    for call in run.interrupted():
        tell(["unknown", call.id])
        if world.paid()[call.id]:
            run.resolve(call, _result(call.id))
        else:
            run.tool_result(call, run.call(call, again=True))


def _lost(before: list[Any], after: list[Any]) -> Iterator[str]:
    """Each report of the killed process that the next one did not find."""
    [found] = [told[1] for told in after if told[0] == "found"]
    said = [told[1] for told in before if told[0] == "said"]
    yield from (f"{text!r} is lost" for text in said if text not in found)
    unknown = [told[1] for told in after if told[0] == "unknown"]
    for ref, *results in (told[1:] for told in before + after if told[0] == "returned"):
        if results != [_result(ref)] * 2:
            yield f"{ref} returned {results}"
    ended = [told[1] for told in before if told[0] == "returned"]
    yield from (f"the end of {ref} is lost" for ref in ended if ref in unknown)


# --- rivals ---------------------------------------------------------------------------


class _Meeting:
    """A source of ids that makes two workers meet, so that both read before one writes.

    When one worker waits in vain for a second, neither waits again.
    """

    def __init__(self) -> None:
        self._barrier = threading.Barrier(RIVALS, timeout=1.0)
        self.is_on = False

    def id(self) -> str:
        if self.is_on:
            with contextlib.suppress(threading.BrokenBarrierError):
                self._barrier.wait()
        return uuid7()


def _rivals(target: Target) -> Iterator[str]:
    """Two workers find the same call open, and make it at the same moment."""
    meeting, world = _Meeting(), World(target.path("world"))
    with contextlib.ExitStack() as stack:
        stores = [
            stack.enter_context(target.open(STORE, new_id=meeting.id))
            for _ in range(RIVALS)
        ]
        run = stores[0].conversations.recorder(TALK, tools=world.tools)
        run.llm_response(_asking(BESIDE))
        run.save()
        runs = [
            store.conversations.recorder(TALK, tools=world.tools) for store in stores
        ]
        meeting.is_on = True
        with ThreadPoolExecutor(RIVALS) as pool:
            told = list(pool.map(_called, runs))
    if world.paid()[BESIDE] != 1:
        yield f"two workers made one call {world.paid()[BESIDE]} times"
    if _result(BESIDE) not in told:
        yield f"two workers got {told}"


def _called(run: Recorder) -> object:
    try:
        return run.call(BESIDE)
    except Conflict as lost:
        return lost.code


# --- the row --------------------------------------------------------------------------


def loop(task: Task) -> Trials:
    """Kill loop after loop, half of them around a payment, and go a way back."""
    ignore_repairs()
    first = task.target.at("alone")
    with first.open(STORE, durability="normal") as store:
        begin(store)
    alone = Trial(first, 0)
    writes = count_writes(lambda at, tell: alone.live(Death(write=at), tell))
    wrong = [f"rivals: {what}" for what in _rivals(first)]
    around = [Death(payment=ref, moment=when) for ref in REFS for when in MOMENTS]
    for number in range(task.count):
        death = Death(write=task.chance.randint(1, writes))
        if number % 2 == 0:
            death = around[number // 2 % len(around)]
        way = list(WAYS_BACK)[number % len(WAYS_BACK)]
        trial = Trial(task.target.at(f"agent{number}"), number)
        wrong += [f"killed {death}, {way}: {what}" for what in trial.wrong(death, way)]
        discard(trial.target)
        task.done(number + 1)
    return Trials(task.count, wrong)
