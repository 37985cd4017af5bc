"""Kills a process at every call that changes a file of owner keys.

usage: kill_owner_keys.py FOLDER

One line of JSON: how many calls were broken and what went wrong at them.
"""

from __future__ import annotations

import base64
import sys
from functools import partial
from pathlib import Path

from holdfast.keys import OwnerKeyFile
from holdfast.testing.trials.children import Child, Tell
from support.report import report
from support.system_calls import BrokenCalls


def change(path: Path, kind: str, how: str, at: int, tell: Tell) -> None:
    keys = OwnerKeyFile(path)
    broken = BrokenCalls(at, how)
    broken.install()
    if kind == "make":
        tell(keys.make_secret("bob").hex())
    else:
        keys.destroy_secret("ann")
        tell("done")


def wrong(path: Path, kind: str, done: list[str], secret: bytes) -> str | None:
    """What is wrong after a kill, before and after the next change."""
    for each in path.parent.iterdir():
        if each.stat().st_mode & 0o777 != 0o600:
            return f"{each.name} has another mode"
    keys = OwnerKeyFile(path)
    bob = keys.find_secret("bob")
    if kind == "make" and keys.find_secret("ann") != secret:
        return "a secret is lost"
    if kind == "make" and done and (bob is None or bob.hex() != done[0]):
        return "a secret that was given is lost"
    if kind == "destroy" and done and keys.find_secret("ann") is not None:
        return "the secret was not removed"
    keys.destroy_secret("ann")
    if keys.find_secret("bob") != bob:
        return "the recovery lost a secret"
    names = [each.name for each in path.parent.iterdir()]
    return f"{names} are left" if names != [path.name] else None


def attempt(folder: Path, kind: str, how: str, at: int) -> tuple[str | None, bool]:
    folder.mkdir()
    path = folder / "owner.keys"
    secret = OwnerKeyFile.create(path).make_secret("ann")
    with path.open("rb", buffering=0) as old:
        child = Child(partial(change, path, kind, how, at))
        done = child.wait()
        if not done and not child.was_killed:
            return "it failed otherwise", False
        problem = wrong(path, kind, done, secret)
        old.seek(0)
        kept = base64.b64encode(secret) in old.read()
    if problem is None and kept:
        problem = "the old content was not overwritten"
    return problem, not done


def main(folder: Path) -> None:
    calls, problems = 0, list[str]()
    for kind in ("make", "destroy"):
        for how in ("kill", "cut"):
            at, was_killed = 0, True
            while was_killed:
                at += 1
                calls += 1
                place = folder / f"{kind}-{how}-{at}"
                problem, was_killed = attempt(place, kind, how, at)
                if problem:
                    problems.append(f"{place.name}: {problem}")
    report({"calls": calls, "wrong": problems})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
