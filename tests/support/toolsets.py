"""Toolsets over a new store, by the sync or the async API."""

import asyncio
import json

import holdfast
from holdfast.tools import AsyncToolset, Toolset


class Blocking:
    """A store and its tools."""

    def __init__(self, path):
        self.store = holdfast.open(path, durability="normal")

    def toolset(self, **options):
        return Toolset(self.store, **options)

    def call(self, name, /, **arguments):
        return self.toolset().call(name, arguments)

    def close(self):
        self.store.close()


class Awaited:
    """The same through the async door, finished before it is given back."""

    def __init__(self, path):
        self.runner = asyncio.Runner()
        self.opened = self.runner.run(self._open(path))
        self.store = holdfast.open(path, durability="normal")

    async def _open(self, path):
        return await holdfast.open_async(path, durability="normal")

    def toolset(self, **options):
        return Finished(AsyncToolset(self.opened, **options), self.runner)

    def call(self, name, /, **arguments):
        return self.toolset().call(name, arguments)

    def close(self):
        self.store.close()
        self.runner.run(self.opened.close())
        self.runner.close()


class Finished:
    """An `AsyncToolset` whose calls are waited for."""

    def __init__(self, tools, runner):
        self.tools, self.runner = tools, runner

    def call(self, *args):
        return self.runner.run(self.tools.call(*args))

    def answer(self, call):
        return self.runner.run(self.tools.answer(call))


def json_size(result):
    """How long a result is as JSON, which it must be, and text that can be encoded."""
    return len(
        json.dumps(
            result, allow_nan=False, ensure_ascii=False, separators=(",", ":")
        ).encode()
    )
