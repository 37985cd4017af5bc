"""A rival that changes the store between two calls of an operation."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from holdfast import Store
from holdfast.backends import Layer
from inner.engine import Cache


class RivalLayer(Layer):
    """Lets a rival act before the n-th call of a verb: ``{("read", 2): rival}``."""

    def __init__(self, backend, rivals):
        super().__init__(backend)
        self.rivals = rivals
        self.calls = Counter()

    def _count(self, verb):
        self.calls[verb] += 1
        rival = self.rivals.pop((verb, self.calls[verb]), None)
        if rival is not None:
            rival()

    async def commit(self, writes):
        self._count("commit")
        return await super().commit(writes)

    def commit_each(self, batches):
        self._count("commit")
        return super().commit_each(batches)

    async def read(self, keys):
        self._count("read")
        return await super().read(keys)

    async def segments(self, family, runs):
        self._count("segments")
        return await super().segments(family, runs)

    async def prune(self, plan):
        self._count("prune")
        return await super().prune(plan)


def beside(store, rivals):
    """The same store with an empty cache, where rivals act between the calls."""
    context = store.runner.context
    layer = RivalLayer(context.backend, dict(rivals))
    return Store(replace(context, backend=layer, cache=Cache(1 << 20)))
