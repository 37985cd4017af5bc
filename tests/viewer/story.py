"""A store that looks like work: a support desk, its forks, failures and open questions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import holdfast
from holdfast.testing import FakeClock, ids

MORNING = 1_794_732_420_000_000  # 2026-11-15 08:47 UTC
MAIN = "support-4812"
SHORT = "returns-desk"


def open_story(path: str) -> None:
    """Make the store at ``path``; equal in every run, down to times and ids."""
    clock = FakeClock(MORNING)
    options: Any = {"clock": clock, "new_id": ids("c-"), "durability": "normal"}
    with holdfast.open(path, **options) as store:
        _long_job(Desk(store, clock, "nightly-report", owner="ops", agent="reporter"))
        _failed(Desk(store, clock, "invoice-77", owner="anna", agent="billing"))
        _waiting(Desk(store, clock, SHORT, owner="ben", agent="support"))
        _refund(Desk(store, clock, MAIN, owner="anna", agent="support"))


class Desk:
    """Saves the steps of one thread, some seconds apart."""

    def __init__(
        self, store: holdfast.Store, clock: FakeClock, name: str, **who: str
    ) -> None:
        self.thread = store.thread(name, **who)
        self.store = store
        self.clock = clock

    def start(self, title: str, rules: str) -> None:
        """The first checkpoint: a title, the rules and some values."""
        state = {
            "title": title,
            "plan": {"cursor": 0, "steps": ["look up", "decide", "tell"]},
            "vars": {"attempts": 1},
            "messages": [{"role": "system", "content": rules}],
        }
        self._tick()
        self.thread.save(state, kind="input")

    def says(self, text: str, tokens: int, **options: Any) -> None:
        """A reply of the model."""
        usage = {"total_tokens": tokens, "cost": round(tokens * 5.1e-6, 6)}
        self._add({"role": "assistant", "content": text}, "llm", usage, **options)

    def hears(self, text: str, **options: Any) -> None:
        """A message of the user."""
        self._add({"role": "user", "content": text}, "input", {}, **options)

    def calls(self, tool: str, arguments: str, result: str, **options: Any) -> None:
        """A call of a tool, and its result: two checkpoints."""
        number = f"call-{self.thread.step}"
        call = {
            "id": number,
            "type": "function",
            "function": {"name": tool, "arguments": arguments},
        }
        asked = {"role": "assistant", "content": "", "tool_calls": [call]}
        usage = {"total_tokens": 240 + 9 * len(arguments), "cost": 0.0013}
        self._add(asked, "llm", usage)
        got = {"role": "tool", "name": tool, "tool_call_id": number, "content": result}
        self._add(got, "tool", {}, **options)

    def _add(
        self, message: dict[str, Any], kind: str, usage: dict[str, Any], **options: Any
    ) -> None:
        self._tick()
        metadata = {**options.pop("metadata", {}), "usage": usage}
        self.thread.extend(
            {"messages": [message]}, kind=kind, metadata=metadata, **options
        )

    def _tick(self) -> None:
        self.clock.advance(timedelta(seconds=20))

    def fork(self, name: str, at: str) -> Desk:
        """A desk over a fork of this thread."""
        fork = object.__new__(Desk)
        fork.thread = self.thread.fork(name, at)
        fork.store, fork.clock = self.store, self.clock
        return fork


def _refund(desk: Desk) -> None:
    desk.start("Refund for order 4812", "Be kind. Refund within 30 days.")
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
    fixed.calls("issue_refund", '{"order": 4812, "amount": 129.0}', '{"refund": "rf_9"}')
    credit.says("May I offer store credit of $140 instead?", 640)


def _failed(desk: Desk) -> None:
    desk.start("Invoice 77", "Write invoices.")
    desk.hears("Please send invoice 77 again.")
    desk.calls(
        "render_pdf",
        '{"invoice": 77}',
        "TimeoutError: the printer did not answer",
        metadata={"status": "error"},
    )


def _waiting(desk: Desk) -> None:
    desk.start("Returns desk", "Ask before money moves.")
    desk.hears("Can I return a used blender?")


def _long_job(desk: Desk) -> None:
    desk.start("Nightly report", "Sum up every shop.")
    for shop in range(14):
        desk.calls("read_sales", f'{{"shop": {shop}}}', f'{{"sum": {shop * 317}}}')
    desk.says("All fourteen shops are summed up: 28,847 in all.", 1240)
