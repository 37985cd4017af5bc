"""Kills an agent's loop at every write of its store and around every effect of a tool.

usage: agent_loop.py FOLDER DIALECT STEP

Of the writes, each STEP-th is taken. Killed, it is resumed, killed again and resumed to
its end. Two loops of three find out about calls whose outcome is unknown; the third
goes on without deciding. One line of JSON: how often it was killed, and what was wrong.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast import Conflict
from holdfast.faults import Fault, kill
from holdfast.recorder import Recorder
from holdfast.strategy import after_reply, after_tool_batch, after_tool_call, never
from inner.messages import INTERRUPTED, stored
from support.children import Child, report
from support.recorders import asking
from support.scenario import lazy_disk
from support.transcripts import problems

Tell = Callable[[object], None]

# The calls of each reply of the model; the last one makes none.
REPLIES = (("a1", "a2", "a3"), ("b1",), ("c1", "c2"))
KILLS = 2
CALLS = [id_ for reply in REPLIES for id_ in reply]
STRATEGIES = {
    "chat": after_reply() | after_tool_call(),
    "responses": after_tool_batch(),
    "anthropic": after_tool_call(),
    "ours": never(),
}


@dataclass(frozen=True)
class Death:
    """When to die: at a call of the disk, or before or after an effect."""

    call: int | None = None
    effect: int | None = None
    is_after: bool = False


ALIVE = Death()


@dataclass
class World:
    """What tools have an effect on: a file that outlives the process."""

    path: str
    death: Death = ALIVE
    count: int = 0

    def use(self, id_: str) -> str:
        """An effect that cannot be taken back."""
        self.count += 1
        self._die(is_after=False)
        with open(self.path, "a") as file:
            file.write(f"{id_}\n")
        self._die(is_after=True)
        return f"did {id_}"

    def _die(self, *, is_after: bool) -> None:
        if (self.death.effect, self.death.is_after) == (self.count, is_after):
            os.kill(os.getpid(), signal.SIGKILL)

    def effects(self) -> list[str]:
        if not os.path.exists(self.path):
            return []
        with open(self.path) as file:
            return file.read().split()


@dataclass
class Trial:
    """One agent in a folder of its own."""

    folder: str
    dialect: str
    options: dict[str, Any]

    @property
    def world(self) -> World:
        return World(os.path.join(self.folder, "effects"))

    def live(self, death: Death, tell: Tell) -> None:
        """In a child: the loop, from where it stopped to its end or to its death."""
        disk = lazy_disk("dying")
        world = self.world
        world.death = death
        store = disk.open(os.path.join(self.folder, "store.db"))
        disk.arm(Fault(at=death.call or sys.maxsize, effect=kill))
        loop = store.conversations.recorder("chat", **self.options)
        self._run(loop, world, tell)
        tell({"calls": disk.heal(), "messages": sent(loop)})
        store.close()

    def _run(self, loop: Recorder, world: World, tell: Tell) -> None:
        if not loop.messages:
            loop.add({"role": "user", "content": "Do it."})
        while True:
            for call in loop.open_calls:
                loop.tool_result(call, self._result(loop, world, call))
            wrong = problems(sent(loop))
            if wrong:
                tell({"invalid": wrong})
            reply = self._reply(loop)
            loop.iteration()
            loop.llm_response(reply, usage={"replies": 1})
            if not loop.open_calls:
                return

    def _reply(self, loop: Recorder) -> list[dict[str, Any]]:
        """What the model says next: the first reply that is not in the transcript."""
        text = str(loop.messages)
        for ids in REPLIES:
            if f"'{ids[0]}'" not in text:
                return asking(self.dialect, *ids)
        return [{"role": "assistant", "content": "Done."}]

    def _result(self, loop: Recorder, world: World, call: Any) -> str:
        def tool(**arguments: object) -> str:
            return world.use(call.id)

        try:
            return loop.call(call, tool)
        except Conflict as conflict:
            if conflict.code != "call_interrupted":
                raise
        if call.id in world.effects():
            return loop.resolve(call, f"did {call.id}")
        return loop.call(call, tool, again=True)

    def wrong(self, death: Death) -> Iterator[str]:
        """Die, resume and die again, resume and finish; what was not as it should."""
        os.makedirs(self.folder)
        first = Child(partial(self.live, death))
        told = first.wait()
        if not first.was_killed:
            yield f"ended with status {first.status} instead of being killed"
        again = Death(death.call and death.call // 2 + 1, death.effect, death.is_after)
        told += Child(partial(self.live, again)).wait()
        told += (last := Child(partial(self.live, ALIVE))).wait()
        if last.status != 0 or "messages" not in told[-1]:
            yield f"did not finish: {last.status}"
            return
        yield from (f"sent {line['invalid']}" for line in told if "invalid" in line)
        yield from self._unlike(told[-1]["messages"])

    def _unlike(self, messages: list[dict[str, Any]]) -> Iterator[str]:
        yield from problems(messages)
        counted = Counter(self.world.effects())
        texts = str(messages)
        unknown = [id_ for id_ in CALLS if f"did {id_}" not in texts]
        for id_ in CALLS:
            is_right = counted[id_] == 1 or (id_ in unknown and not counted[id_])
            if not is_right:
                yield f"{id_} took effect {counted[id_]} times"
        if unknown and self.options["repair"] is None:
            yield f"{unknown} are unknown, though the loop found out about each"
        if texts.count(INTERRUPTED) != len(unknown):
            yield f"{unknown} are unknown, and the model does not know that"
        if len(unknown) > KILLS:
            yield f"{unknown} are unknown, though it was killed {KILLS} times"


def sent(loop: Recorder) -> list[dict[str, Any]]:
    """The transcript that the model gets."""
    return [stored(message) for message in loop.messages]


def deaths(folder: str, dialect: str, step: int) -> list[Death]:
    """Every point at which a loop that is left alone can be killed."""
    trial = Trial(folder, dialect, {"repair": None, "save": STRATEGIES[dialect]})
    os.makedirs(folder)
    [told] = Child(partial(trial.live, ALIVE)).finish()
    around = [
        Death(effect=n, is_after=is_after)
        for n in range(1, len(CALLS) + 1)
        for is_after in (False, True)
    ]
    return around + [Death(call=n) for n in range(1, told["calls"] + 1, step)]


def main(folder: str, dialect: str, step: int) -> None:
    wrong: list[str] = []
    points = deaths(os.path.join(folder, "whole"), dialect, step)
    for number, death in enumerate(points):
        repair = None if number % 3 else "interrupted"
        options = {"repair": repair, "save": STRATEGIES[dialect]}
        trial = Trial(os.path.join(folder, str(number)), dialect, options)
        wrong += [f"{death}, {repair}: {text}" for text in trial.wrong(death)]
    report({"killed": len(points), "wrong": wrong})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
