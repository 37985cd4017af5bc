"""The agent: a loop that saves every step and records every effect.

Its model is a script that looks at nothing but the saved state, so the state is all a
new process needs. Run as a program, it works under the eyes of `process.Worker`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import holdfast
from demo.shop import FIRST_ORDER, Call, Shop, customer, price

THREAD = "recall-kx17"
RULES = (
    "You are the recall desk of a kitchen shop. For every order on the list: look it "
    "up, inspect its batch, then refund it if it was delivered within the refund "
    "window, else issue store credit, and write to the customer. Money moves at once "
    "and cannot be called back: never pay an order twice."
)
TURNS = 4  # tool calls an order takes


@dataclass(frozen=True, slots=True)
class Event:
    """What an agent has just made durable, or found, or is in the middle of."""

    kind: Literal["began", "recorded", "found", "saved", "done", "inside", "unknown"]
    step: int
    order: int = 0
    tool: str = ""


def work(thread: holdfast.Thread, shop: Shop) -> Iterator[Event]:
    """Carry the thread's task on to its end, from wherever its state stands."""
    state = thread.load()
    yield Event("began", thread.step)
    while (call := think(state)) is not None:
        result = thread.recorded(call.key)
        if result is None:
            result = thread.record(call.key, shop.perform(call))
            yield Event("recorded", thread.step, call.order, call.tool)
        else:
            yield Event("found", thread.step, call.order, call.tool)
        added, label = outcome(state, call, result)
        saved = thread.extend(added, label=label)
        for name, elements in added.items():
            state[name] += elements
        yield Event("saved", saved.step, call.order, call.tool)
    yield Event("done", thread.step)


def opening(orders: int) -> dict[str, Any]:
    """The state a task begins with."""
    listed = list(range(FIRST_ORDER, FIRST_ORDER + orders))
    return {
        "refund_days": 30,
        "orders": listed,
        "closed": [],
        "messages": [
            {"role": "system", "content": RULES},
            {"role": "user", "content": f"Please settle these {orders} orders."},
        ],
    }


def think(state: dict[str, Any]) -> Call | None:
    """The model: the next tool call, ``None`` when the task is done."""
    place, turn = divmod((len(state["messages"]) - 2) // 2, TURNS)
    if place == len(state["orders"]):
        return None
    order = state["orders"][place]
    if turn == 0:
        return Call("lookup_order", order, {"order": order})
    if turn == 1:
        return Call("inspect_batch", order, {"order": order, "samples": 60})
    if turn == 2:
        known = state["messages"][-3]["content"]
        late = known["delivered_days_ago"] > state["refund_days"]
        tool = "issue_credit" if late else "issue_refund"
        return Call(tool, order, {"order": order, "amount": price(order)})
    paid = state["messages"][-1]["content"]
    return Call("send_email", order, {"order": order, "body": letter(order, paid)})


def outcome(
    state: dict[str, Any], call: Call, result: dict[str, Any]
) -> tuple[dict[str, list[Any]], str | None]:
    """What a finished call adds to the state, and the label of the step."""
    turn = [
        {"role": "assistant", "content": remark(call), "call": asdict(call)},
        {"role": "tool", "content": result},
    ]
    if call.tool != "send_email":
        return {"messages": turn}, None
    paid = state["messages"][-1]["content"]
    closed = {"order": call.order, "by": paid["tool"], "receipt": paid["receipt"]}
    return {"messages": turn, "closed": [closed]}, f"closed-{call.order}"


def remark(call: Call) -> str:
    """What the model says with a call."""
    name = customer(call.order)
    remarks = {
        "lookup_order": f"Next is order {call.order} of {name}. I need the date of "
        "delivery and how it was paid before I decide anything.",
        "inspect_batch": f"The order of {name} is found. Before money moves I check "
        "that this very unit belongs to a recalled batch, and how severe that is.",
        "issue_refund": f"Recalled, severity high, delivered within the refund window: "
        f"{name} gets {price(call.order):.2f} EUR back to the card. I pay once.",
        "issue_credit": f"Recalled, but delivered outside the refund window: {name} "
        f"gets {price(call.order):.2f} EUR as store credit, valid for a year.",
        "send_email": f"Settled. {name} should hear today that the kettle must not be "
        "used any more, what was paid and where it goes.",
    }
    return remarks[call.tool]


def letter(order: int, paid: dict[str, Any]) -> str:
    """The mail to the customer."""
    return (
        f"Dear {customer(order)},\n\nyour kettle from order {order} belongs to a batch "
        "that we recall: it may not switch itself off. Please stop using it today. You "
        "need not send it back; any recycling point takes it.\n\n"
        f"We have {paid['status']} {paid['amount']:.2f} {paid['currency']} to your "
        f"{paid['to']}. The receipt is {paid['receipt']}. If nothing arrives within a "
        "week, answer this mail and a person will look into it.\n\nWe are sorry.\n"
        "The recall desk\n"
    )


def main(path: str, ledger: str) -> None:
    """Work as a process that says what it did and waits to be told to go on."""
    with holdfast.open(path) as store:
        for event in work(store.thread(THREAD), Shop(ledger)):
            print(json.dumps(asdict(event)), flush=True)
            if not sys.stdin.readline():
                return


if __name__ == "__main__":
    main(*sys.argv[1:])
