"""Kills the loop of docs/loop.md before its lines and at the writes of its store.

usage: loop_on_the_page.py FOLDER DOOR PLACE LINES WRITES

The text of the page is run as it stands. DOOR is ``blocking`` or ``awaited``. PLACE is
where in the folder its store is: a file, or with ``dir:`` in front a folder; or the
address of a PostgreSQL server. A process is killed at each LINES-th moment of the page,
which is when a line begins or a function returns, and within a tool up to twelve times
as often; and at each WRITES-th write of the store. With 0 it is killed at none of them.

Killed, the program is started again, killed at half of the way and started again. One
line of JSON: how often it was killed, how often it was left unknown whether the mail
was sent, and what was wrong.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from types import CodeType, FrameType
from typing import Any

from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

import holdfast
from holdfast.faults import Call, Fault, FaultyDisk, kill
from inner.api import Opening
from inner.messages import INTERRUPTED
from support.children import Child, report
from support.folders import DOCS
from support.scenario import address, lazy_disk
from support.transcripts import problems

Tell = Callable[[object], None]

PAGE = "loop.md"
OPENED = {"blocking": "holdfast.open(", "awaited": "holdfast.open_async("}
CONVERSATION = "refunds"
TOOLS = {"look_up", "refund", "send_mail"}
IN_TOOLS = 12
REFUNDED = ["4812", "4813"]
MAILED = ["4812"]
CHAT = TypeAdapter(list[ChatCompletionMessageParam])


def program(door: str) -> tuple[CodeType, CodeType]:
    """The tools and one of the two loops, exactly as the page has them."""
    text = (DOCS / PAGE).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    tools = next(block for block in blocks if "def ask_model(" in block)
    loop = next(block for block in blocks if OPENED[door] in block)
    return compile(tools, PAGE, "exec"), compile(loop, PAGE, "exec")


@dataclass(frozen=True)
class Death:
    """When to die: at a moment of the page, or at a call of the disk."""

    moment: int = sys.maxsize
    call: int = sys.maxsize

    @property
    def again(self) -> Death:
        """When to die after a resume."""
        return Death(_half(self.moment), _half(self.call))


def _half(number: int) -> int:
    return number if number == sys.maxsize else number // 2 + 1


ALIVE = Death()


@dataclass
class Moments:
    """The moments of the page since its store was opened, and the one to die at."""

    death: Death
    tell: Tell
    places: list[str] = field(default_factory=list)

    def trace(self, frame: FrameType, _: str, __: object) -> Any:
        """For `sys.settrace`: only what the page says itself is traced."""
        code = frame.f_code
        is_of_page = code.co_filename == PAGE and code.co_name != "<genexpr>"
        return self._moment if is_of_page else None

    def _moment(self, frame: FrameType, event: str, _: object) -> Any:
        if event in {"line", "return"}:
            self.places.append(frame.f_code.co_name)
            if len(self.places) == self.death.moment:
                self.tell({"killed in": frame.f_code.co_name})
                kill(Call("write", PAGE))
        return self._moment


@dataclass
class Trial:
    """The program of the page in a folder of its own."""

    folder: str
    door: str
    place: str

    def live(self, death: Death, tell: Tell) -> None:
        """In a child: the program, from where it stopped to its end or its death."""
        os.chdir(self.folder)
        moments, names = Moments(death, tell), {"__name__": PAGE}
        disk = lazy_disk("page")
        tools, loop = program(self.door)
        exec(tools, names)
        names["ask_model"] = _checking(names["ask_model"], tell)
        self._open_through(disk)
        disk.arm(Fault(at=death.call, effect=kill))
        sys.settrace(moments.trace)
        with redirect_stdout(io.StringIO()):
            exec(loop, names)
        sys.settrace(None)
        tell({"calls": disk.heal(), "places": moments.places} | self._stored())

    def _open_through(self, disk: FaultyDisk) -> None:
        """Let the page open the store of this trial, whatever it names."""
        if self.place.startswith("postgresql:"):
            schema = f"loop_{os.path.basename(self.folder)}"
            opened, awaited = holdfast.open, holdfast.open_async
            holdfast.open = lambda _: opened(self.place, schema=schema)
            holdfast.open_async = lambda _: awaited(self.place, schema=schema)
            return
        path = address(self.folder, self.place)
        holdfast.open = lambda _: disk.open(path)
        holdfast.open_async = lambda _: Opening(lambda: disk.open(path).runner.context)

    def _stored(self) -> dict[str, Any]:
        with holdfast.open(PAGE) as store:
            return {
                "damage": [str(problem) for problem in store.verify().problems],
                "messages": store.conversations.load(CONVERSATION).messages,
            }

    def world(self, name: str) -> list[str]:
        """What the tools did."""
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return file.read().split()


def _checking(ask_model: Callable[..., Any], tell: Tell) -> Callable[..., Any]:
    """The model of the page; it tells what a provider would not accept."""

    def ask(messages: list[dict[str, Any]]) -> Any:
        tell({"asked": invalid(messages)})
        return ask_model(messages)

    return ask


def invalid(messages: list[dict[str, Any]]) -> list[str]:
    """Why OpenAI would refuse a transcript."""
    try:
        CHAT.validate_python(messages)
    except ValueError as error:
        return [str(error)]
    return problems(messages)


@dataclass
class Trials:
    """Many trials of one kind, each with a death of its own."""

    folder: str
    door: str
    place: str
    killed: int = 0
    unknown: int = 0
    wrong: list[str] = field(default_factory=list)
    expected: list[dict[str, Any]] = field(default_factory=list)

    def _new(self, name: str) -> Trial:
        folder = os.path.join(self.folder, name)
        os.makedirs(folder)
        return Trial(folder, self.door, self.place)

    def deaths(self, lines: int, writes: int) -> Iterator[Death]:
        """Run without a death; then every point at which to die."""
        trial = self._new("whole")
        *asked, told = Child(partial(trial.live, ALIVE)).finish()
        self.expected = told["messages"]
        self.wrong += [text for line in asked for text in line["asked"]]
        self.wrong += invalid(self.expected)
        for moment, place in enumerate(told["places"], 1):
            step = max(1, lines // IN_TOOLS) if place in TOOLS else lines
            if lines and moment % step == 0:
                yield Death(moment=moment)
        if writes:
            yield from (Death(call=n) for n in range(1, told["calls"] + 1, writes))

    def attempt(self, death: Death) -> None:
        """Die, resume and die again, resume and finish; note what was wrong."""
        self.killed += 1
        trial = self._new(str(self.killed))
        first = Child(partial(trial.live, death))
        told = first.wait()
        if not first.was_killed:
            self.wrong.append(f"{death}: ended with {first.status}, was not killed")
        told += Child(partial(trial.live, death.again)).wait()
        told += (last := Child(partial(trial.live, ALIVE))).wait()
        if last.status != 0:
            self.wrong.append(f"{death}: did not finish: {last.status}")
            return
        self.wrong += [f"{death}: {text}" for text in self._unlike(trial, told)]

    def _unlike(self, trial: Trial, told: list[dict[str, Any]]) -> Iterator[str]:
        """How the end differs from that of a program that was left alone."""
        messages = told[-1]["messages"]
        yield from told[-1]["damage"]
        yield from (f"sent {text}" for line in told for text in line.get("asked", ()))
        if trial.world("bank.txt") != REFUNDED:
            yield f"refunded {trial.world('bank.txt')}"
        unknown = [n for n, m in enumerate(messages) if m["content"] == INTERRUPTED]
        if not unknown and trial.world("mails.txt") != MAILED:
            yield f"mailed {trial.world('mails.txt')}, and nothing says so"
        if len(trial.world("mails.txt")) > 1:
            yield f"mailed {trial.world('mails.txt')}"
        yield from self._unlike_transcript(messages, unknown, told)

    def _unlike_transcript(
        self,
        messages: list[dict[str, Any]],
        unknown: list[int],
        told: list[dict[str, Any]],
    ) -> Iterator[str]:
        for position in unknown:
            self.unknown += 1
            if not messages[position]["tool_call_id"].startswith("send_mail"):
                yield f"unknown, though it could be found out: {messages[position]}"
            messages[position] = self.expected[position]
        if unknown and not self._may_be_unknown(told):
            yield "unknown, though it was not killed while the mail was sent"
        if messages != self.expected:
            yield f"another transcript: {messages}"
        yield from invalid(messages)

    def _may_be_unknown(self, told: list[dict[str, Any]]) -> bool:
        """Whether a kill can have come between the beginning and the end of a mail.

        Killed at a write, or while it waits for one, the page is in no tool.
        """
        killed_in = [line["killed in"] for line in told if "killed in" in line]
        is_between = not killed_in or self.door == "awaited"
        return is_between or "send_mail" in killed_in


def main(folder: str, door: str, place: str, lines: int, writes: int) -> None:
    trials = Trials(folder, door, place)
    for death in list(trials.deaths(lines, writes)):
        trials.attempt(death)
    found = {"killed": trials.killed, "unknown": trials.unknown}
    report(found | {"wrong": trials.wrong})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
