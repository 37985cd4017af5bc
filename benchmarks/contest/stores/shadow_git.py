"""A commit every turn in a git repository beside the work, as coding agents do it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

import orjson

from benchmarks.contest.stores.whole_states import replace
from benchmarks.contest.workload import Turn

FILE = "chat.jsonl"
# Nothing of the user's own settings: no hooks, no signatures, no other identity.
ISOLATED = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "bench",
    "GIT_AUTHOR_EMAIL": "bench@localhost",
    "GIT_COMMITTER_NAME": "bench",
    "GIT_COMMITTER_EMAIL": "bench@localhost",
}
# By default git leaves new objects to the cache of the operating system.
SETTINGS = ("-c", "core.fsync=all", "-c", "gc.autoDetach=false")


class ShadowGit:
    """The state as a file with a line for each message, committed every turn."""

    def __init__(self, path: str) -> None:
        self._folder = path
        self._file = os.path.join(path, FILE)
        if not os.path.exists(path):
            os.makedirs(path)
            self._git("init", "-q")

    def save(self, turn: Turn) -> None:
        """Write the file and commit it."""
        lines = [orjson.dumps(message) for message in turn.messages]
        replace(self._file, b"\n".join(lines))
        self._git("add", FILE)
        self._git("commit", "-q", "-m", "turn")

    def load(self) -> Sequence[object]:
        """The file as it was committed last."""
        content = self._git("show", f"HEAD:{FILE}")
        return [orjson.loads(line) for line in content.split(b"\n")]

    def last(self, count: int) -> Sequence[object]:
        """The last lines of the file that was committed last."""
        lines = self._git("show", f"HEAD:{FILE}").rsplit(b"\n", count)
        return [orjson.loads(line) for line in lines[-count:]]

    def close(self) -> None:
        """Nothing is open."""

    def _git(self, *arguments: str) -> bytes:
        ran = subprocess.run(
            ["git", *SETTINGS, *arguments],
            cwd=self._folder,
            env={**os.environ, **ISOLATED},
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        return ran.stdout


class PackedGit(ShadowGit):
    """The same, packed when it is closed."""

    def close(self) -> None:
        """Run git's garbage collection, which packs all objects."""
        self._git("gc", "-q")
