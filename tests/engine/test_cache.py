"""How much of the last states stays in memory."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast import Store
from holdfast.backends import Layer, StateKey
from inner.engine import Cache

TEXT = "x" * 10_000
# Room for two states with the text, and not for three.
BUDGET = 30_000


class WholeReads(Layer):
    """Notes the threads whose state is read whole, because the cache lacks it."""

    def __init__(self, backend):
        super().__init__(backend)
        self.threads = []

    async def read(self, keys):
        found = await super().read(keys)
        self.threads += [
            key.name
            for key, stored in zip(keys, found, strict=True)
            if isinstance(key, StateKey) and stored.segments is not None
        ]
        return found


def test_the_state_used_longest_ago_leaves_a_full_cache(memory):
    context = memory.runner.context
    layer = WholeReads(context.backend)
    store = Store(replace(context, backend=layer, cache=Cache(BUDGET)))
    for name in ("a", "b"):
        store.thread(name).save({"text": name + TEXT})
    store.thread("a").load()
    store.thread("c").save({"text": f"c{TEXT}"})

    loaded = [store.thread(name).load()["text"] for name in ("c", "a", "b")]

    assert loaded == [f"c{TEXT}", f"a{TEXT}", f"b{TEXT}"]
    assert layer.threads == ["b"]
