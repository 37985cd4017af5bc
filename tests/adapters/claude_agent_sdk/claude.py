"""Claude itself, the command line that the SDK brings along, over a store in a file."""

from __future__ import annotations

from pathlib import Path

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ResultMessage,
    project_key_for_directory,
    query,
)

from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore


class Claude:
    """Claude over a store in a file, each run with a store of its own."""

    def __init__(self, folder, env):
        folder = Path(folder)
        self.path, self.config = str(folder / "agents.db"), folder / "config"
        self.folder = folder / "project"
        self.env = {**env, "CLAUDE_CONFIG_DIR": str(self.config)}

    async def ask(self, prompt, **options):
        async with HoldfastSessionStore(self.path) as sessions:
            options = ClaudeAgentOptions(
                session_store=sessions,
                cwd=str(self.folder),
                env=self.env,
                allowed_tools=["Bash"],
                **options,
            )
            told = [message async for message in query(prompt=prompt, options=options)]
        assert isinstance(told[-1], ResultMessage)
        return told[-1]

    def key(self, session):
        project = project_key_for_directory(str(self.folder))
        return {"project_key": project, "session_id": session}
