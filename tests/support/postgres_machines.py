"""The state machines of the models on PostgreSQL, where every example begins empty."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from support import agent_machine, databases, servers, thread_machine

MACHINES = {"threads": thread_machine.Machine, "agents": agent_machine.Machine}


def on_server(machine: Any, emptied, door, **special):
    """A machine whose place is emptied for every example."""

    class OnServer(machine):
        def open(self):
            if not hasattr(self, "store"):
                emptied.empty()
            super().open()

        def open_store(self, url, **options):
            place = {"schema": emptied.schema, "pool": (1, 1), **special}
            return databases.DOORS[door](emptied.url, **(options | place))

    return OnServer


def agree(machine, server, door, examples, **special):
    """Let a machine try its examples on a server."""
    schema = f"model_{uuid.uuid4().hex[:8]}"
    tried = settings(max_examples=examples, stateful_step_count=20)
    with contextlib.closing(servers.Emptied(servers.shared(server), schema)) as emptied:
        placed = on_server(machine, emptied, door, **special)
        run_state_machine_as_test(placed, settings=tried)
