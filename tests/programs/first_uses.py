"""Uses a store in many ways while msgspec may not read the annotations of a class.

usage: first_uses.py FOLDER

Fails if a type of ours is not prepared when its module is imported: msgspec then reads
its annotations at its first use, and crashes if two threads are there at once.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import msgspec

import holdfast
from holdfast import keys
from holdfast.tools import Toolset
from holdfast.workspace import Workspace

CALL = {"name": "pay", "arguments": '{"order": 1}'}
ASKED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": CALL}],
}
# Frameworks, pytest's suite, and programs.
APART = {"adapters", "testing", "__main__", "_reference"}


def refuse(kind: object) -> None:
    raise AssertionError(f"{kind} is not prepared")


def main(folder: Path) -> None:
    for found in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if not {*found.name.split(".")} & APART:
            import_module(found.name)
    vars(msgspec)["_utils"].get_class_annotations.__code__ = refuse.__code__

    work = folder / "work"
    work.mkdir()
    (work / "a.txt").write_text("one")
    workspace = Workspace(work)
    secrets = keys.OwnerKeyFile.create(folder / "keys")
    with holdfast.open(folder / "a.db", key=secrets) as store:
        thread = store.thread("chat", owner="ann")
        thread.save({"plan": 1}, files=workspace)
        run = store.conversations.recorder("paid", owner="ann", tools=[pay])
        run.add({"role": "user", "content": "pay"})
        run.llm_response(ASKED)
        for call in run.open_calls:
            run.tool_result(call, run.call(call))
        for _ in range(2):
            thread.explore(change, n=2, workspace=workspace)
        (work / "a.txt").write_text("two")
        workspace.restore(thread, "@", force=True)
        workspace.undo(thread)
        other = thread.fork("other")
        other.append(list=[1])
        thread.merge(other)
        assert "error" not in Toolset(store).call("persistence_stats", {})
        store.verify(seal=store.seal())
        store.export_to(folder / "a.hfa")
        store.thread("bob", owner="bob").save({"n": 1})
        receipt = store.erase(owner="bob")
        type(receipt).from_json(receipt.to_json())
    with holdfast.open(folder / "b.db") as store:
        store.import_archive(folder / "a.hfa")


@holdfast.once
def pay(order: int) -> str:
    return f"{order} is paid"


def change(branch: holdfast.Branch) -> None:
    path = os.path.join(branch.workspace.path, "a.txt")
    Path(path).write_text(str(branch.number))
    branch.thread.save({"plan": branch.number}, files=branch.workspace)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
