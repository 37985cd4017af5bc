"""Kills writers at random moments and looks at what they left behind.

usage: random_kills.py FOLDER SEED ROUNDS [KIND [DOOR]]

The stores are files, or with "dir:" as their kind folders. The writers use the
sync API ("blocking") or the async API ("awaited").

One line of JSON: how many writers were killed, how many saves had been acknowledged,
and what was wrong.
"""

from __future__ import annotations

import os
import random
import sys
from functools import partial

import holdfast
from holdfast.testing.trials.kills import ROUNDS_PER_STORE, Rounds, ignore_repairs
from support.report import report
from support.stores import opened


def main(
    folder: str, seed: int, rounds: int, kind: str = "", door: str = "blocking"
) -> None:
    ignore_repairs()
    chance = random.Random(seed)
    kills = acknowledged = 0
    wrong: list[str] = []
    for first in range(0, rounds, ROUNDS_PER_STORE):
        path = kind + os.path.join(folder, f"{first}.db")
        to_check = partial(holdfast.open, path, durability="normal", cache_size=0)
        stores = Rounds(partial(opened, door, path), to_check, chance)
        holdfast.open(path).close()
        for number in range(first, min(rounds, first + ROUNDS_PER_STORE)):
            stores.run(number)
        kills += len(stores.acknowledged)
        acknowledged += sum(map(len, stores.acknowledged.values()))
        wrong += stores.wrong
    report({"kills": kills, "acknowledged": acknowledged, "wrong": wrong})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
