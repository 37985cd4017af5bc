"""A store that looks like work: a support desk with forks, failures and questions."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import holdfast
from holdfast.testing import FakeClock, ids

MORNING = 1_794_732_420_000_000  # 2026-11-15 08:47 UTC
MAIN = "support-4812"
LONG = "nightly-report"


def open_story(path: str) -> None:
    """Make the store at ``path``; equal in every run, down to times and ids."""
    clock = FakeClock(MORNING)
    options: Any = {"clock": clock, "new_id": ids("c-"), "durability": "normal"}
    with holdfast.open(path, **options) as store:
        start = partial(begin, store, clock)
        rules = "Be kind. Ask before money moves. Refund within 30 days."
        ops = {"owner": "ops", "agent": "reporter"}
        _long_job(start(LONG, "Nightly report", "Sum up every shop.", **ops))
        billing = {"owner": "anna", "agent": "billing"}
        _failed(start("invoice-77", "Invoice 77", "Write invoices.", **billing))
        desk = {"agent": "support"}
        _waiting(start("returns-desk", "Returns desk", rules, owner="ben", **desk))
        _refund(start(MAIN, "Refund for order 4812", rules, owner="anna", **desk))


class Desk:
    """Saves the steps of one thread, some seconds apart."""

    def __init__(self, clock: FakeClock, thread: holdfast.Thread, state: Any) -> None:
        self.thread = thread
        self.clock = clock
        self.state: dict[str, Any] = state

    def hears(self, text: str, **options: Any) -> None:
        """A message of the user."""
        self._add({"role": "user", "content": text}, kind="input", **options)

    def says(self, text: str, tokens: int, **options: Any) -> None:
        """A reply of the model."""
        self._spend(tokens)
        self._add({"role": "assistant", "content": text}, kind="llm", **options)

    def calls(self, tool: str, arguments: str, result: str, **options: Any) -> None:
        """A call of a tool, and its result: two checkpoints."""
        number = f"call-{self.thread.step}"
        function = {"name": tool, "arguments": arguments}
        call = {"id": number, "type": "function", "function": function}
        self._spend(240 + 9 * len(arguments))
        self._add(
            {"role": "assistant", "content": "", "tool_calls": [call]}, kind="llm"
        )
        got = {"role": "tool", "name": tool, "tool_call_id": number, "content": result}
        self._add(got, kind="tool", **options)

    def fork(self, name: str, at: str) -> Desk:
        """A desk over a fork of this thread."""
        fork = self.thread.fork(name, at)
        return Desk(self.clock, fork, fork.load())

    def _spend(self, tokens: int) -> None:
        spent = self.state["run"]["usage"]
        cost = round(spent["cost"] + tokens * 5.1e-6, 6)
        self.state["run"] = {
            "usage": {"total_tokens": spent["total_tokens"] + tokens, "cost": cost}
        }

    def _add(self, message: dict[str, Any], **options: Any) -> None:
        self.clock.advance(timedelta(seconds=20))
        self.state["messages"] = [*self.state["messages"], message]
        self.thread.save(self.state, **options)


def begin(
    store: holdfast.Store,
    clock: FakeClock,
    name: str,
    title: str,
    rules: str,
    **who: str,
) -> Desk:
    """A new thread, with its first checkpoint."""
    state: dict[str, Any] = {
        "title": title,
        "run": {"usage": {"total_tokens": 0, "cost": 0.0}},
        "plan": {"cursor": 0, "steps": ["look up", "decide", "tell"]},
        "vars": {"attempts": 1},
        "messages": [{"role": "system", "content": rules}],
    }
    thread = store.thread(name, **who)
    thread.save(state, kind="input")
    return Desk(clock, thread, state)


def _refund(desk: Desk) -> None:
    desk.hears("I want my money back for order 4812.")
    desk.says("I look up the order first.", 412)
    desk.calls("get_order", '{"order": 4812}', '{"delivered": true, "paid": 129.0}')
    found = desk.thread.step
    desk.says("Refund denied: outside 14 days.", 655, label="bad-policy")
    desk.hears("Your site says 30 days!")
    desk.says("You are right, and I am sorry. I check our policy again.", 702)
    fixed = desk.fork("fix-policy", f"@{found}")
    fixed.calls("get_policy", '{"page": "returns"}', '{"days": 30}')
    fixed.says("Refund approved: $129.00.", 671, tags=["golden"])
    credit = fixed.fork("try-credit", f"@{found + 2}")
    fixed.calls(
        "issue_refund", '{"order": 4812, "amount": 129.0}', '{"refund": "rf_9"}'
    )
    credit.says("May I offer store credit of $140 instead?", 640)


def _failed(desk: Desk) -> None:
    desk.hears("Please send invoice 77 again.")
    desk.calls(
        "render_pdf",
        '{"invoice": 77}',
        "TimeoutError: the printer did not answer",
        metadata={"status": "error"},
    )


def _waiting(desk: Desk) -> None:
    desk.hears("Can I return a used blender?")


def _long_job(desk: Desk) -> None:
    for shop in range(14):
        desk.calls("read_sales", f'{{"shop": {shop}}}', f'{{"sum": {shop * 317}}}')
    desk.says("All fourteen shops are summed up: 28,847 in all.", 1240)
