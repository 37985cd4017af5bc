"""Asks Claude something, with a session store; a test kills it before the answer."""

import asyncio
import json
import sys

from adapters.claude_agent_sdk.claude import Claude

if __name__ == "__main__":
    folder, env, prompt = sys.argv[1:]
    claude = Claude(folder, json.loads(env))
    asyncio.run(claude.ask(prompt, session_store_flush="eager"))
