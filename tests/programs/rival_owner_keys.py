"""Two processes change a file of owner keys while a third one reads it.

usage: rival_owner_keys.py FOLDER

One line of JSON: how often it was read, and what went wrong.
"""

from __future__ import annotations

import base64
import json
import sys
from functools import partial
from pathlib import Path

from holdfast import HoldfastError
from holdfast.keys import OwnerKeyFile
from holdfast.testing.trials.children import Child, Tell
from support.report import report

# So many that the file takes several pages of memory: a reader may see some as zeros.
OWNERS, CHANGES = 400, 60


def change(path: Path, name: str, tell: Tell) -> None:
    keys = OwnerKeyFile(path)
    for number in range(CHANGES):
        owner = f"{name} {number}"
        tell([owner, keys.make_secret(owner).hex()])


def fill(path: Path) -> bytes:
    keys = OwnerKeyFile.create(path)
    content = json.loads(path.read_text())
    some = base64.b64encode(bytes(32)).decode()
    content["owners"] = {str(number): some for number in range(OWNERS)}
    path.write_text(json.dumps(content))
    return keys.make_secret("ann")


def main(folder: Path) -> None:
    path, wrong, reads = folder / "owner.keys", list[str](), 0
    secret = fill(path)
    keys = OwnerKeyFile(path)
    children = [Child(partial(change, path, name)) for name in ("one", "other")]
    made: dict[str, str] = {}
    for child in children:
        for owner, found in child.reports():
            made[owner] = found
            reads += 1
            try:
                if keys.find_secret("ann") != secret:
                    wrong.append("a secret is missing")
            except HoldfastError as error:
                wrong.append(str(error))
        child.wait()
    lost = [o for o, found in made.items() if keys.find_secret(o).hex() != found]
    if lost or len(made) != 2 * CHANGES:
        wrong.append(f"{lost} are lost of {len(made)}")
    report({"reads": reads, "wrong": wrong})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
