"""Copies a store and kills itself on the way.

usage: copy_store.py SOURCE TARGET FAMILIES [ADOPTIONS]

It dies when so many families are told to be there, or with ADOPTIONS when the target
has taken over so many parts: of a family, first its segments and then all else.
"""

import os
import signal
import sys

from msgspec.structs import replace

import holdfast
from holdfast import Store


class Dying:
    """A backend that takes over so many parts, and is killed when it has."""

    def __init__(self, backend, most: int) -> None:
        self._backend, self._left = backend, most

    def __getattr__(self, name: str):
        return getattr(self._backend, name)

    async def adopt(self, adoption) -> None:
        await self._backend.adopt(adoption)
        self._left -= 1
        if self._left == 0:
            die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(source: str, target: str, families: int, adoptions: int = 0) -> None:
    def watch(done: int, of: int) -> None:
        if done == families and not adoptions:
            die()

    with holdfast.open(source) as ours, holdfast.open(target) as theirs:
        context = theirs.runner.context
        dying = replace(context, backend=Dying(context.backend, adoptions))
        ours.copy_to(Store(dying), progress=watch)


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
