"""Runs the basics of Holdfast in a process that takes itself for one on Windows.

It lacks what Windows lacks. Modules of others are imported first: on this system they
would fail to load what only Windows has.
"""

import asyncio
import importlib
import json
import os
import signal
import sys
from pathlib import Path

THEIRS = (
    *("concurrent.futures.thread", "ctypes", "difflib", "importlib.metadata"),
    *("tempfile", "apsw", "click", "msgspec", "orjson", "psycopg_pool", "uvicorn"),
    *("cryptography.hazmat.primitives.ciphers.aead", "mcp.server", "mcp.server.stdio"),
    *("cryptography.hazmat.primitives.keywrap", "xxhash", "zstandard"),
)
# What Windows does not have, and what it has instead of it.
MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty")
FUNCTIONS = (
    *("register_at_fork", "fork", "fdatasync", "pread", "pwrite", "statvfs"),
    *("O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "fchmod", "fchown", "getuid"),
    *("geteuid", "killpg", "mkfifo", "chown", "sync", "posix_fallocate"),
)
# What imports a framework or another store.
OF_OTHERS = (".adapters.", ".bench.stores.")


def take_away() -> None:
    """Make this process lack what Windows lacks."""
    for name in THEIRS:
        importlib.import_module(name)
    for name in MODULES:  # an import fails then
        sys.modules[name] = None
    for name in FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    signal.SIGBREAK = signal.SIGINT  # type: ignore[attr-defined]
    os.O_BINARY = 0  # type: ignore[attr-defined]
    sys.platform = "win32"


def blocking(address: str) -> None:
    """Save, fork, search, rewind, check and copy with the sync API."""
    import holdfast

    with holdfast.open(address) as store:
        chat = store.thread("chat")
        first = chat.save({"messages": [{"role": "user", "content": "hello"}]})
        chat.append(messages=[{"role": "assistant", "content": "A train to Lyon"}])
        chat.fork("trial", at=first)
        chat.rewind(first)
        chat.undo()
        assert chat.step == 2
        assert [match.thread for match in store.search("lyon")] == ["chat"]
        store.agents.save(holdfast.Agent(id="planner", state={"step": 1}))
        assert store.verify().ok
        store.delete("trial")
    with holdfast.open(address, read_only=True) as store:
        assert len(store.thread("chat").load()["messages"]) == 2


async def awaited(address: str) -> None:
    """Save from several tasks with the async API."""
    import holdfast

    async with holdfast.open_async(address) as store:
        thread = store.thread("counted")
        await asyncio.gather(*(thread.append(n=[n]) for n in range(8)))
        assert sorted((await thread.load())["n"]) == list(range(8))


def imported() -> list[str]:
    """Import every module that needs no framework, and say which did not work."""
    import holdfast

    root = Path(holdfast.__file__).parent
    failed = []
    for path in sorted(root.rglob("*.py")):
        name = ".".join(["holdfast", *path.relative_to(root).with_suffix("").parts])
        name = name.removesuffix(".__init__")
        if any(part in name for part in OF_OTHERS) or name.endswith("__main__"):
            continue
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - all are listed
            failed.append(f"{name}: {type(error).__name__}: {error}")
    return failed


def main() -> None:
    """Run everything in a folder; print what could not be imported."""
    take_away()
    os.chdir(sys.argv[1])
    for address in ("a.db", "dir:folder"):
        blocking(address)
        asyncio.run(awaited(address))
    sys.stdout.write(json.dumps(imported()))


if __name__ == "__main__":
    main()
