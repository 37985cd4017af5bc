"""The world the agent acts on: customers, orders, and tools with a ledger.

Every effect a tool has is one line of the ledger, a plain file that knows nothing of
Holdfast. A call made twice stands in it twice, under two receipts.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from typing import Any

FIRST_ORDER = 4812
NAMES = (
    "Ada Moreno",
    "Tomas Lindqvist",
    "Priya Raman",
    "Jonas Weber",
    "Mei Tanaka",
    "Ines Duarte",
    "Samuel Okafor",
    "Lena Novak",
    "Omar Haddad",
    "Claire Dubois",
    "Mateo Silva",
    "Ruth Abrams",
)
CITIES = ("Lisbon", "Uppsala", "Leeds", "Bremen", "Osaka", "Porto", "Lagos", "Brno")
MODELS = (("KX-17 kettle", 89.0), ("KX-17 Pro kettle", 129.0), ("KX-17 set", 149.0))
STATIONS = ("packed in Rotterdam", "left the depot", "at the local hub", "delivered")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; its key is the same however often it is asked for."""

    tool: str
    order: int
    arguments: dict[str, Any]

    @property
    def key(self) -> str:
        return f"{self.order}/{self.tool}"


@dataclass(frozen=True, slots=True)
class Effect:
    """One line of the ledger."""

    key: str
    receipt: str
    process: int


@dataclass(frozen=True, slots=True)
class Shop:
    """The tools, writing to one ledger."""

    ledger: str

    def perform(self, call: Call) -> dict[str, Any]:
        """Do what the call asks for, and give back the tool's result."""
        effect = Effect(call.key, f"rc_{secrets.token_hex(4)}", os.getpid())
        with open(self.ledger, "a", encoding="utf-8") as file:
            line = {"key": effect.key, "receipt": effect.receipt, "pid": effect.process}
            file.write(json.dumps(line) + "\n")
        return _result(call, effect)

    def find(self, call: Call) -> dict[str, Any] | None:
        """The result of a call whose effect is in the ledger, else ``None``."""
        made = [effect for effect in self.effects() if effect.key == call.key]
        return _result(call, made[0]) if made else None

    def effects(self) -> list[Effect]:
        """Everything the tools have done, oldest first."""
        with open(self.ledger, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return [Effect(line["key"], line["receipt"], line["pid"]) for line in lines]


def _result(call: Call, effect: Effect) -> dict[str, Any]:
    result = RESULTS[call.tool](call)
    return {"receipt": effect.receipt, "tool": call.tool} | result


def customer(order: int) -> str:
    return NAMES[(order - FIRST_ORDER) % len(NAMES)]


def price(order: int) -> float:
    return MODELS[order % len(MODELS)][1]


def delivered_days_ago(order: int) -> int:
    last_of_round = (order - FIRST_ORDER) % len(NAMES) == len(NAMES) - 1
    return 45 if last_of_round else 3 + order * 7 % 26


def _card(order: int) -> str:
    return f"{order * 37 % 10_000:04}"


def _look_up(call: Call) -> dict[str, Any]:
    order, name = call.order, customer(call.order)
    days = delivered_days_ago(order)
    handle = name.lower().replace(" ", ".")
    return {
        "order": order,
        "customer": {"name": name, "email": f"{handle}@example.com", "since": 2019},
        "items": [{"sku": "KX-17", "name": MODELS[order % len(MODELS)][0], "qty": 1}],
        "total": price(order),
        "currency": "EUR",
        "payment": {"method": "card", "last4": _card(order)},
        "ship_to": {"city": CITIES[order % len(CITIES)], "gift": order % 5 == 0},
        "delivered_days_ago": days,
        "tracking": [
            {"days_ago": days + 3 - position, "event": station, "carrier": "Northline"}
            for position, station in enumerate(STATIONS)
        ],
        "earlier_orders": [_earlier(order, back) for back in range(1, 17)],
    }


def _earlier(order: int, back: int) -> dict[str, Any]:
    number = order - 311 * back
    model, total = MODELS[number % len(MODELS)]
    return {
        "order": number,
        "days_ago": 40 + 53 * back,
        "items": [{"sku": f"S-{number * 31 % 9973:04}", "name": model, "qty": 1}],
        "total": total,
        "status": "returned" if number % 7 == 0 else "delivered",
        "city": CITIES[number % len(CITIES)],
    }


def _inspect(call: Call) -> dict[str, Any]:
    serial = f"KX17-{call.order * 7919 % 1_000_000:06}"
    return {
        "serial": serial,
        "batch": f"2026-W{call.order % 9 + 31}",
        "recalled": True,
        "finding": (
            f"Unit {serial} comes from a line whose thermostat was fitted with the "
            "wrong bimetal strip. Seven of sixty sampled units did not switch off when "
            "boiled dry. No injury is known. Severity: high. The customer should stop "
            "using it; it need not be sent back."
        ),
        "samples": [_sample(call.order, unit) for unit in range(1, 61)],
    }


def _sample(order: int, unit: int) -> dict[str, Any]:
    celsius = 101 + order * unit % 31
    return {
        "unit": unit,
        "cut_off_celsius": celsius,
        "seconds_after_dry": order * unit % 97,
        "verdict": "fail" if celsius > 125 else "pass",
    }


def _refund(call: Call) -> dict[str, Any]:
    return {
        "status": "settled",
        "amount": call.arguments["amount"],
        "currency": "EUR",
        "to": f"card ending {_card(call.order)}",
    }


def _credit(call: Call) -> dict[str, Any]:
    return {
        "status": "credited",
        "amount": call.arguments["amount"],
        "currency": "EUR",
        "to": "shop account",
    }


def _mail(call: Call) -> dict[str, Any]:
    return {"status": "accepted", "message": f"<{call.order}@recall.example.com>"}


RESULTS = {
    "lookup_order": _look_up,
    "inspect_batch": _inspect,
    "issue_refund": _refund,
    "issue_credit": _credit,
    "send_email": _mail,
}
