"""A program that is killed inside a tool; its arguments say where its session is."""

import json
import os
import signal
import sys

from strands import tool

import holdfast
from adapters.strands.scripted import agent
from adapters.strands.sessions import SESSIONS


@tool
def charge(amount: int) -> str:
    """Charge a card."""
    os.kill(os.getpid(), signal.SIGKILL)
    return f"charged {amount}"


if __name__ == "__main__":
    kind, address, options = sys.argv[1:]
    with holdfast.open(address, **json.loads(options)) as store:
        given = {"tools": [charge]}
        worker = agent(SESSIONS[kind](store), ("charge", {"amount": 5}), **given)
        worker.state.set("customer", "ann")
        worker("Charge 5 please")
