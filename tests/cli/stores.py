"""Stores for the command line's tests: the same to the last byte on every run."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holdfast
from support.stores import backend_of

STARTED = 1_794_736_800_000_000  # 2026-11-15 10:00:00 UTC, in microseconds
TICK = 20_000_000
TEXT = "We land at eleven in the evening; please keep the room for us. " * 2
HOSTILE = (
    "\x1b[2J\x1b]0;pwned\x07[bold]bold[/bold] \u202egnp.exe\u202c \x9b31mred\r\x08"
)


def clock() -> Callable[[], int]:
    """Twenty seconds pass with every reading of the clock."""
    ticks = itertools.count(STARTED, TICK)
    return lambda: next(ticks)


def ids() -> Callable[[], str]:
    """Ids in the format of a store, which share their first half."""
    numbers = itertools.count(1)

    def new() -> str:
        number = next(numbers)
        return (
            f"019a86b5-2f40-7{number:03x}-8000-{number * 2_654_435_761 % 16**12:012x}"
        )

    return new


def opened(path: str | os.PathLike[str]) -> holdfast.Store:
    """A store whose times and ids are known."""
    return holdfast.open(path, clock=clock(), new_id=ids())


def make_support(path: Path) -> None:
    """A refund that was denied, rewound and tried again in two forks."""
    with opened(path) as store:
        chat = store.thread("support-4812", owner="ann", agent="desk")
        chat.save(
            {"messages": [said("user", "I want my money back")], "attempts": 0},
            kind="input",
        )
        chat.append(messages=[said("assistant", "plan: look up order 4812")])
        order = said("tool", "delivered, $129.00")
        looked_up = chat.append(messages=[order])
        chat.save(
            {**chat.load(), "attempts": 1, "verdict": "denied"},
            label="denied",
            tags=["bad-policy"],
            metadata={"model": "small", "tokens": 655},
        )
        chat.append(messages=[said("assistant", "Refund denied: outside 14 days.")])
        chat.rewind(looked_up)
        chat.save({**chat.load(), "policy_days": 30}, kind="tool")
        fix = chat.fork("fix-policy")
        fix.save({**fix.load(), "verdict": "approved"}, label="golden", tags=["ok"])
        fix.append(messages=[said("tool", "issue_refund(4812, 129.00): rf_9")])
        credit = chat.fork("try-credit", at=looked_up)
        credit.save({**credit.load(), "verdict": "credit"})


def make_hostile(path: Path) -> None:
    """Names, labels and texts that try to take over the terminal."""
    with opened(path) as store:
        thread = store.thread(f"evil {HOSTILE}", owner=HOSTILE)
        thread.save({"plain": 1, HOSTILE: HOSTILE}, label=HOSTILE, tags=["a\nb"])
        thread.save({"plain": 2, HOSTILE: f"{HOSTILE}!"}, metadata={HOSTILE: HOSTILE})


def said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def make_travel(path: Path) -> None:
    """Two conversations."""
    with opened(path) as store:
        for id_, owner in (("trip-7", "ann"), ("trip-8", "bob")):
            store.conversations.create(id_, owner=owner, agent="planner")
            store.conversations.add(id_, said("user", "A train to Lyon, please"))
            store.conversations.add(id_, said("assistant", "Booked.\nLyon, 9:12"))


def make_wide(path: Path) -> None:
    """Conversations whose lines are wider than most screens; one waits for a call."""
    with opened(path) as store:
        tools = {"send_email": send_email}
        about: Any = {"owner": "ann", "agent": "planner", "title": "A letter to Lyon"}
        store.conversations.create("letter", **about)
        run = store.conversations.recorder("letter", agent="planner", tools=tools)
        run.add(said("user", "Write to the hotel that we arrive late. " * 5))
        run.save(label="asked", metadata={"tokens": 412})
        run.llm_response(
            asked("c1", "send_email", to="desk@astoria.example", text=TEXT)
        )
        run.tool_result("c1", run.call("c1"))
        run.llm_response(asked("c2", "send_email", to="ann@home.example", text="Done."))
        with contextlib.suppress(Killed):
            run.call("c2", kill)
        graph = store.thread("notes", owner="bob", kind="notebook")
        graph.save({"messages": [said("user", "Remember the milk")]}, kind="input")


def make_damaged(path: Path) -> None:
    """A thread of which one value has lost a piece."""
    with opened(path) as store:
        store.thread("whole").save({"n": 1})
        chat = store.thread("broken")
        chat.save({"text": "first " * 2000})
        chat.save({"text": "second " * 2000, "n": 2})
        backend = backend_of(store)
        backend.database.writer.execute(
            "delete from segment where key = (select max(key) from segment)"
        )


def make_trip(path: Path) -> None:
    """An agent that booked and paid, was rewound, and was killed in a payment."""
    with opened(path) as store:
        tools = {"book": book, "pay": pay}
        run = store.conversations.recorder("trip-7", agent="planner", tools=tools)
        run.add(said("user", "Two nights in Lyon, please"))
        run.llm_response(asked("c1", "book", hotel="Astoria", nights=2))
        run.tool_result("c1", run.call("c1"))
        chat = store.thread("conversation:trip-7")
        booked = chat.get()
        run.llm_response(asked("c2", "pay", to="Astoria", amount=240))
        run.tool_result("c2", run.call("c2"))
        run.llm_response(asked("c3", "pay", to="nobody", amount=1))
        with contextlib.suppress(ValueError):
            run.call("c3")
        run.tool_result("c3", "no such payee", is_error=True)
        chat.fork("conversation:what-if", booked, effects="deny")
        chat.fork("conversation:try-train")
        run.resume(at=booked, tell=False)
        reply = asked("c4", "pay", to="Bristol", amount=310)
        reply["tool_calls"] += asked("c5", "book", hotel="Bristol", nights=1)[
            "tool_calls"
        ]
        run.llm_response(reply)
        with contextlib.suppress(Killed):
            run.call("c4", kill)
        chat.consume("approval:42")
        chat.record("note", {"by": "ann"})
        chat.record("seen", True, checkpoint=booked)
        store.thread("quiet").save({"n": 1})


def make_agent(path: Path) -> None:
    """An agent with checkpoints; since the first it did something of everything."""
    with opened(path) as store:
        agent = store.agents.save(holdfast.Agent(id="planner", name="Planner"))
        on_duty: Any = {"agent": "planner", "tools": {"pay": pay}}
        run = store.conversations.recorder("trip-7", **on_duty)
        run.add(said("user", "Two nights in Lyon, please"))
        run.save()
        store.conversations.create("old-plans", agent="planner")
        store.agents.checkpoint("planner", "before-paying", description="all agreed")
        run.llm_response(asked("c1", "pay", to="Astoria", amount=240))
        run.tool_result("c1", run.call("c1"))
        store.agents.checkpoint("planner", kind="automatic")
        run.add(said("user", "And the train?"))
        store.conversations.delete("old-plans")
        run = store.conversations.recorder("train", **on_duty)
        run.llm_response(asked("c2", "pay", to="railway", amount=88))
        run.tool_result("c2", run.call("c2"))
        agent.set_state("mood", "busy")
        store.agents.save(agent)
        store.agents.save(holdfast.Agent(id="idle"))


def book(hotel: str, nights: int) -> dict[str, object]:
    return {"booking": f"{hotel}-{nights}"}


def send_email(to: str, text: str) -> dict[str, object]:
    return {"status": "sent", "to": to, "id": "msg-7f31", "copy": text}


def pay(to: str, amount: int) -> dict[str, object]:
    if to == "nobody":
        raise ValueError("no such payee")
    return {"receipt": f"{to}-{amount}"}


def kill(**_: object) -> None:
    raise Killed


class Killed(BaseException):
    """The end of a process in the middle of a tool."""


def asked(id_: str, tool: str, **arguments: object) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": id_, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
