"""Ways back to before an action that a killed process made: rewind, fork, restore ...

After each of them the action must still count as done, and must not be repeated.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeAlias

from holdfast import Agent, Retention, Store
from holdfast._values.clock import now
from holdfast.testing.faults import Call, Fault, kill
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.scenario import lazy_disk
from holdfast.testing.trials.task import FILE, FOLDER, Target

STORE = "store"
AGENT = "worker"
TALK = "talk"
# The label of the first checkpoint of the conversation, and the agent's checkpoint.
START = "start"

# An action on a conversation that must not be made twice.
Act: TypeAlias = Callable[[Store, str], None]
# A store, and a conversation in it that is back at its first messages.
Place: TypeAlias = tuple[Store, str]
WayBack: TypeAlias = Callable[[Target, Store, Act], Place]


def begin(store: Store) -> None:
    """Make the conversation, and a label and an agent checkpoint of its beginning."""
    store.agents.save(Agent(id=AGENT))
    run = store.conversations.recorder(TALK, agent=AGENT)
    run.add({"role": "user", "content": "Begin."})
    run.save(label=START)
    store.agents.checkpoint(AGENT, START)


def _rewound(_: Target, store: Store, __: Act) -> Place:
    store.conversations.thread(TALK).rewind(f"label:{START}")
    return store, TALK


def _rewound_hard(_: Target, store: Store, __: Act) -> Place:
    store.conversations.thread(TALK).rewind(f"label:{START}", hard=True)
    return store, TALK


def _undone(_: Target, store: Store, __: Act) -> Place:
    thread = store.conversations.thread(TALK)
    while thread.get().label != START:
        thread.undo()
    return store, TALK


def _forked(_: Target, store: Store, __: Act) -> Place:
    store.conversations.thread(TALK).fork("conversation:fork", at=f"label:{START}")
    return store, "fork"


def _merged(target: Target, store: Store, act: Act) -> Place:
    thread = store.conversations.thread(TALK)
    side = thread.fork("conversation:side")
    act(store, "side")
    thread.merge(side)
    # The action of the side counts here too; this one is made in addition.
    act(store, TALK)
    return _rewound(target, store, act)


def _restored(_: Target, store: Store, __: Act) -> Place:
    store.agents.restore(AGENT, START)
    return store, TALK


def _pruned(target: Target, store: Store, act: Act) -> Place:
    place = _rewound(target, store, act)
    store.prune(Retention(last=1, within=timedelta(0), tagged=False, labelled=False))
    return place


def _copied(target: Target, store: Store, act: Act) -> Place:
    copy = target.open("copy", durability="normal")
    store.copy_to(copy)
    store.close()
    return _rewound(target, copy, act)


def _archived(target: Target, store: Store, act: Act) -> Place:
    copy = target.open("copy", durability="normal")
    store.export_to(target.path("archive"))
    store.close()
    copy.import_archive(target.path("archive"))
    os.remove(target.path("archive"))
    return _rewound(target, copy, act)


WAYS_BACK: dict[str, WayBack] = {
    "rewound": _rewound,
    "rewound for good": _rewound_hard,
    "undone": _undone,
    "forked": _forked,
    "merged": _merged,
    "restored": _restored,
    "pruned": _pruned,
    "copied": _copied,
    "archived": _archived,
}


# --- dying ----------------------------------------------------------------------------


@contextlib.contextmanager
def open_to_die(target: Target, write: int, tell: Tell) -> Generator[Store]:
    """A store whose process is killed at its n-th write; tells how many it made.

    On a server it is killed before a write instead, when it asks for the time.
    """
    if target.kind in {FILE, FOLDER}:
        disk = lazy_disk("dying")
        with target.open_on(disk, target.url(STORE)) as store:
            disk.arm(Fault(at=write, effect=kill))
            yield store
            tell(["writes", disk.heal()])
        return
    clock = _DyingClock(write)
    with target.open(STORE, clock=clock.time) as store:
        yield store
        tell(["writes", clock.count])


def count_writes(work: Callable[[int, Tell], None]) -> int:
    """The number of writes that the work of a child makes when it is not killed."""
    told = Child(partial(work, sys.maxsize)).wait()
    # If it failed, the trials will say so.
    return int(told[-1][1]) if told and told[-1][0] == "writes" else 1


def discard(target: Target) -> None:
    """Remove the stores of a trial."""
    target.discard(STORE)
    target.discard("copy")


@dataclass
class _DyingClock:
    end: int
    count: int = 0

    def time(self) -> int:
        self.count += 1
        if self.count == self.end:
            kill(Call("write", STORE))
        return now()
