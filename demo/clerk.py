"""A loop with a recorder: the model asks for two refunds in one reply.

docs/loop.md explains such a loop. Run as a program, it works under the eyes of
`process.Worker`, also inside the tool.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import holdfast
from demo.agent import Event
from demo.shop import Call, Shop, price
from holdfast.recorder import Recorder

CONVERSATION = "two-refunds"
ORDERS = (4824, 4825)
TASK = "Two more kettles came back: please refund the orders 4824 and 4825."

Report = Callable[[Event], None]


def refund_call(order: int) -> Call:
    return Call("issue_refund", order, {"order": order, "amount": price(order)})


def order_of(call: Any) -> int:
    """The order that a call of the model is about."""
    order: int = call.arguments["order"]
    return order


def work(run: Recorder, shop: Shop, report: Report) -> None:
    """Carry the task on to its end, from wherever the transcript stands."""
    for call in run.interrupted():
        report(Event("unknown", 0, order_of(call)))
        if result := shop.find(refund_call(order_of(call))):
            run.resolve(call, result)
        else:
            run.tool_result(call, run.call(call, again=True))
    if not run.messages:
        run.add({"role": "user", "content": TASK})
    while True:
        for call in run.open_calls:
            run.tool_result(call, run.call(call))
            report(Event("recorded", 0, order_of(call)))
        last: Any = run.messages[-1]
        if last["role"] == "assistant":
            return
        run.llm_response(think(run.messages))


def think(messages: list[Any]) -> dict[str, Any]:
    """The model: two refunds at once, then a word about them."""
    if len(messages) > 1:
        return {"role": "assistant", "content": "Both orders are refunded."}
    calls = [
        {
            "id": f"refund-{order}",
            "type": "function",
            "function": {"name": "refund", "arguments": json.dumps({"order": order})},
        }
        for order in ORDERS
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def main(path: str, ledger: str) -> None:
    """Work as a process that says what it did and waits to be told to go on."""
    shop = Shop(ledger)

    def report(event: Event) -> None:
        print(json.dumps(asdict(event)), flush=True)
        if not sys.stdin.readline():
            sys.exit()

    @holdfast.once(key=["order"])
    def refund(order: int) -> dict[str, Any]:
        result = shop.perform(refund_call(order))
        report(Event("inside", 0, order))
        return result

    with holdfast.open(path) as store:
        run = store.conversations.recorder(CONVERSATION, tools=[refund])
        work(run, shop, report)


if __name__ == "__main__":
    main(*sys.argv[1:])
