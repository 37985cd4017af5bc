"""A program: one turn of the agent, killed before the model answers if it is told so.

``python -m adapters.google_adk.turn ADDRESS OPTIONS WHAT [INVOCATION]``
"""

from __future__ import annotations

import asyncio
import json
import sys

from adapters.google_adk.agents import runner, turn
from holdfast.adapters.google_adk import HoldfastSessionService


async def main(address, options, what, *invocation):
    options = json.loads(options)
    if "pool" in options:
        options["pool"] = tuple(options["pool"])
    async with HoldfastSessionService(address, **options) as sessions:
        running = runner(sessions, killed=what == "killed")
        if invocation:
            where = {"user_id": "ann", "session_id": "s1"}
            resumed = running.run_async(**where, invocation_id=invocation[0])
            events = [event async for event in resumed if event.content]
        else:
            events = await turn(running)
        told = [event.content.parts[0].text for event in events]
        sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
