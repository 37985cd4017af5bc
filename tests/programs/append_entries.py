"""Appends entries to a session of the Claude Agent SDK, a batch a line of its report.

Each batch has an entry that all workers append, and one of the worker's own.
"""

import asyncio
import json
import sys

from adapters.claude_agent_sdk.entries import KEY, said
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from support.report import report


def batches(worker, count):
    """What a worker appends."""
    return [
        [said(number, "shared"), said(1000 * worker + number, f"by {worker}")]
        for number in range(1, count + 1)
    ]


async def main(place, worker, count):
    address, options = place
    async with HoldfastSessionStore(address, **options) as sessions:
        report("ready")
        sys.stdin.readline()
        for number, batch in enumerate(batches(worker, count), 1):
            await sessions.append(KEY, batch)
            report(number)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1]), *map(int, sys.argv[2:])))
