"""A model that asks for payments, and a world that counts them."""

from __future__ import annotations

import json
from typing import Any

import holdfast


def asking_to_pay(call: str, ref: str, to: str = "bob", amount: int = 500) -> dict:
    """A reply with one call of ``pay``, in the format of OpenAI Chat."""
    arguments = json.dumps({"to": to, "amount": amount, "ref": ref})
    function = {"name": "pay", "arguments": arguments}
    call_ = {"id": call, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call_]}


class World:
    """What the tools change; nothing in it is ever taken back by a store."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int, str]] = []
        self.cancelled: list[str] = []
        self.looked = 0

    def tools(self, **declared: Any) -> dict[str, Any]:
        """The tools; the arguments are those of `holdfast.once`."""

        @holdfast.once(**{"undo": self.cancel} | declared)
        def pay(to: str, amount: int, ref: str) -> dict[str, str]:
            self.paid.append((to, amount, ref))
            return {"receipt": ref}

        @holdfast.repeatable
        def look() -> int:
            self.looked += 1
            return self.looked

        return {"pay": pay, "look": look}

    def cancel(self, effect: holdfast.Effect) -> None:
        """The undo of a payment."""
        self.cancelled.append(effect.arguments["ref"])


def pay(run: Any, call: str, ref: str, **arguments: Any) -> Any:
    """The model asks for a payment, and the loop makes the call."""
    run.llm_response(asking_to_pay(call, ref, **arguments))
    return make(run, call)


def make(run: Any, call: str) -> Any:
    """The loop makes a call and records its result."""
    result = run.call(call)
    run.tool_result(call, result)
    return result
