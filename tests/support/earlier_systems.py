"""What the tests of earlier systems' mistakes share."""

from datetime import timedelta

from msgspec.structs import replace

from holdfast import Store
from inner.engine import Cache
from support.stores import backend_of

DAY = timedelta(days=1)


def steps(checkpoints):
    return [checkpoint.step for checkpoint in checkpoints]


class Watched:
    """A backend that notes what it is asked for, and may be interrupted before it."""

    blocking = True

    def __init__(self, backend):
        self.backend = backend
        self.asked = []
        self.before = {}

    def __getattr__(self, name):
        verb = getattr(self.backend, name)

        async def ask(*arguments, **options):
            self.asked.append(name)
            self.before.pop(name, lambda: None)()
            return await verb(*arguments, **options)

        return ask


def watched(store):
    """The same store with a `Watched` backend, and that backend."""
    backend = Watched(backend_of(store))
    context = replace(store.runner.context, backend=backend, cache=Cache(1 << 20))
    return Store(context), backend


def damage(store, thread, at="@"):
    """Spoil the last segment that only this checkpoint of a thread in memory uses."""
    checkpoint = store.thread(thread).get(at)
    last = checkpoint.family << 32 | max(run.last for run in checkpoint.runs)
    db = backend_of(store).database.writer
    db.execute("update segment set data = zeroblob(9) where key = ?", (last,))
    assert db.changes() == 1
