"""A grant is used once, even if its user is killed or its work is taken back."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

from holdfast import Store
from holdfast.testing.trials.children import Child, Gate, Tell
from holdfast.testing.trials.kills import ignore_repairs
from holdfast.testing.trials.scenario import problems_of
from holdfast.testing.trials.task import Target, Task, Trials
from holdfast.testing.trials.ways_back import (
    START,
    STORE,
    TALK,
    WAYS_BACK,
    Act,
    Place,
    begin,
    count_writes,
    discard,
    open_to_die,
)

GRANTS = [f"approval:{n}" for n in range(6)]
BESIDE, NEW = "approval:beside", "approval:new"
# The conversations of the rivals, each a fork of the first one.
RIVALS = ["rival-0", "rival-1", "rival-2"]


def _deleted(_: Target, store: Store, __: Act) -> Place:
    store.conversations.thread(TALK).fork("conversation:heir", at=f"label:{START}")
    store.conversations.delete(TALK)
    return store, "heir"


WAYS = {**WAYS_BACK, "deleted": _deleted}


def _use(store: Store, talk: str, grant: str) -> bool:
    return store.conversations.thread(talk).consume(grant)


def _use_all(target: Target, write: int, tell: Tell) -> None:
    """In a child: use the grants on two conversations, up to the death at a write."""
    with open_to_die(target, write, tell) as store:
        for n, grant in enumerate(GRANTS):
            tell(["asked", grant])
            if _use(store, (TALK, RIVALS[0])[n % 2], grant):
                tell(["used", grant])


def _compete(
    target: Target, talk: str, grants: list[str], gate: Gate, tell: Tell
) -> None:
    """In a child: use all grants at the same time as the others."""
    with target.open(STORE, busy_timeout=60) as store:
        gate.wait()
        for grant in grants:
            if _use(store, talk, grant):
                tell(["used", grant])


def _wrong(
    target: Target, write: int, way: str, chance: random.Random
) -> Iterator[str]:
    """Use the grants, killed and beside rivals; go back, and try all grants again."""
    _begin(target)
    killed = Child(partial(_use_all, target, write))
    told = killed.wait()
    if not killed.was_killed:
        yield f"it ended with {killed.status} instead of being killed"
    last = told[-1][1] if told and told[-1][0] == "asked" else None
    gate = Gate(len(RIVALS))
    rivals = [
        Child(partial(_compete, target, talk, chance.sample(GRANTS, len(GRANTS)), gate))
        for talk in RIVALS
    ]
    gate.open()
    told += [one for rival in rivals for one in rival.finish()]
    used = Counter(grant for what, grant in told if what == "used")
    for grant in GRANTS:
        # The killed process may have used the last grant without reporting it.
        if used[grant] > 1 or (not used[grant] and grant != last):
            yield f"{grant} was used {used[grant]} times"
    yield from _after(target, way)


def _begin(target: Target) -> None:
    with target.open(STORE, durability="normal") as store:
        begin(store)
        for talk in RIVALS:
            store.conversations.thread(TALK).fork(f"conversation:{talk}")


def _after(target: Target, way: str) -> Iterator[str]:
    """The grants that can be used again after a way back."""
    beside: list[str] = []

    def use_beside(store: Store, talk: str) -> None:
        beside.append(f"{BESIDE} {len(beside)}")
        _use(store, talk, beside[-1])

    store = target.open(STORE, cache_size=0)
    try:
        store, name = WAYS[way](target, store, use_beside)
        again = _used(store, name, [*GRANTS, *beside])
        yield from (f"{grant} was used again" for grant in again)
        if _used(store, name, [NEW, NEW]) != [NEW]:
            yield "a new grant cannot be used, or not once"
        yield from problems_of(store)
    finally:
        store.close()


def _used(store: Store, talk: str, grants: Iterable[str]) -> list[str]:
    return [grant for grant in grants if _use(store, talk, grant)]


def grants(task: Task) -> Trials:
    """A killed process and three rivals use grants; then try them after a way back."""
    ignore_repairs()
    first = task.target.at("alone")
    _begin(first)
    writes = count_writes(partial(_use_all, first))
    wrong: list[str] = []
    for number in range(task.count):
        write = task.chance.randint(1, writes)
        way = list(WAYS)[number % len(WAYS)]
        target = task.target.at(f"family{number}")
        found = _wrong(target, write, way, task.chance)
        wrong += [f"killed at {write}, {way}: {what}" for what in found]
        discard(target)
        task.done(number + 1)
    return Trials(task.count, wrong)
