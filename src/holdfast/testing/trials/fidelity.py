"""Values come back equal, types included, or are refused; the same on every backend."""

from __future__ import annotations

import math
import random
import string
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import orjson

import holdfast
from holdfast import Store, Unstorable
from holdfast.testing.trials.task import Task, Trials

LONG = "x" * 1_000_000
DEPTH = 150
REFUSED = "refused"


def _deep(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def _circle() -> object:
    value: list[object] = []
    value.append(value)
    return value


NASTY: tuple[object, ...] = (
    *(None, True, False, 0, -1, 2**53 + 1, 2**63, -(2**63) - 1, 2**70),
    *(0.0, -0.0, 1e-320, 1.7976931348623157e308, math.inf, -math.inf, math.nan),
    *(
        "",
        "\0",
        "a\0b",
        "\x7f\x80",
        "\ud7ff",
        "\ue000",
        "\ud800",
        "😀",
        "\u00e9",
        "e\u0301",
    ),
    *(b"", b"\0\xff", bytearray(b"x"), (), (1, (2,)), [()]),
    *orjson.loads('[[], [[]], {}, [{}], {"": {}}, {"$hf.tuple": []}]'),
    *({1: "int"}, {True: 1}, {None: 1}, {(1, 2): 3}, {"1": 1, 1: 2}),
    *({1, 2}, frozenset({1}), {"b": 1, "a": 2}, [1, 1.0, True], 1j, ..., range(3)),
    *(
        date(1, 1, 1),
        datetime(2026, 3, 29, 2, 30, tzinfo=UTC),
        time(23, 59, 59, 999999),
    ),
    *(timedelta.min, Decimal("1.10"), Decimal("NaN"), UUID(int=7), object(), print),
    *(_deep(DEPTH), _deep(100_000), _circle(), LONG, [LONG], {"a": LONG}),
)


def _random_value(chance: random.Random, depth: int = 3) -> object:
    if depth == 0 or chance.random() < 0.4:  # noqa: PLR2004 - shallow on average
        return chance.choice(
            (
                chance.randrange(-(1 << 66), 1 << 66),
                chance.uniform(-1e9, 1e9),
                "".join(chance.choices(string.printable + "é😀\0\u2028", k=9)),
                chance.randbytes(5),
                None,
                Decimal(chance.randrange(10**9)) / 1000,
            )
        )
    parts = [_random_value(chance, depth - 1) for _ in range(chance.randrange(5))]
    mapping = {f"k{n}": part for n, part in enumerate(parts)}
    return chance.choice((parts, tuple(parts), mapping))


def fidelity(task: Task) -> Trials:
    """Nasty values and random ones, each by itself and within a mapping."""
    wrong: list[str] = []
    more = max(0, task.count - len(NASTY))
    values = [*NASTY, *(_random_value(task.chance) for _ in range(more))]
    with (
        task.target.open("values", durability="normal", cache_size=0) as store,
        holdfast.open(":memory:", cache_size=0) as memory,
    ):
        for n, value in enumerate(values):
            wrong += _compared(store, memory, value)
            task.done(n + 1)
    return Trials(len(values), wrong)


def _compared(store: Store, memory: Store, value: object) -> list[str]:
    found = _kept(store, value)
    if found != _kept(memory, value):
        return [f"backends differ about {_shown(value)}"]
    if found not in (REFUSED, _text(value)):
        return [f"{_shown(value)} came back as {found[:80]}"]
    return []


def _kept(store: Store, value: object) -> str:
    """The value as it comes back, as text; ``REFUSED`` if it is not taken."""
    thread = store.thread("value")
    before = thread.step
    try:
        thread.save({"value": value, "beside": 1})
    except Unstorable:
        return REFUSED if thread.step == before else "refused, and yet saved"
    return _text(thread.load()["value"])


def _text(value: object) -> str:
    try:
        return repr(value)
    except RecursionError:
        return "too deep"


def _shown(value: object) -> str:
    return _text(value)[:80]
