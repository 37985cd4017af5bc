"""Damage to the bytes of a store, and what can still be read of it."""

import holdfast
from holdfast import HoldfastError
from support.effort import FLIPS


def reads_of_store(store):
    """Every way to read a store, each by itself."""
    reads = {
        "threads": lambda store: store.threads(limit=None).items,
        "of an owner": lambda store: store.threads(owner="owner 1", limit=None).items,
        "changes": lambda store: store.changes(limit=10_000).items,
    }
    for thread in store.threads(limit=None):
        reads |= _reads_of(store.thread(thread.id))
    return reads


def _reads_of(thread):
    name = thread.id
    reads = {
        "about": lambda thread: thread.about,
        "state": lambda thread: thread.load(),
        "history": lambda thread: thread.history(None, all=True).items,
        "line": lambda thread: thread.history(None).items,
        "journal": lambda thread: thread.journal(),
        "moves": lambda thread: thread.moves(None).items,
        "label": lambda thread: thread.find(label="kept"),
        "tag": lambda thread: thread.find(tag="t"),
    }
    for checkpoint in thread.history(None, all=True):
        reads |= _reads_at(checkpoint.id)
    return {
        f"{name}: {what}": lambda store, read=read: read(store.thread(name))
        for what, read in reads.items()
    }


def _reads_at(id_):
    return {
        f"{id_}: get": lambda thread: thread.get(id_),
        f"{id_}: state": lambda thread: thread.load(id_),
        f"{id_}: journal": lambda thread: thread.journal(checkpoint=id_),
    }


def _flipped(data, chance):
    """The data with one bit turned over, and where."""
    place = chance.randrange(len(data) * 8)
    damaged = bytearray(data)
    damaged[place // 8] ^= 1 << place % 8
    return bytes(damaged), f"bit {place % 8} of byte {place // 8}"


def _truncated(data, chance):
    """The data without its end, and how much is left."""
    size = chance.randrange(len(data))
    return data[:size], f"{size} of {len(data)} bytes left"


def _shortened(data, chance):
    """The data without some of its last bytes, and how much is left."""
    size = len(data) - chance.randrange(1, 4096)
    return data[:size], f"{size} of {len(data)} bytes left"


def _zeroed(data, chance):
    """The data with a block that was never written, and where."""
    start = chance.randrange(len(data) // 512) * 512
    return data[:start] + bytes(512) + data[start + 512 :], f"zeros at {start}"


def _zeroed_end(data, chance):
    """The data with a block near its end that was never written, and where."""
    start = len(data) - chance.randrange(1, 17) * 512
    return data[:start] + bytes(512) + data[start + 512 :], f"zeros at {start}"


class Outcome:
    """What reading everything in a damaged store gave."""

    def __init__(self, path, truth):
        self.sound, self.wrong, self.failed, self.problems = set(), [], {}, []
        try:
            store = holdfast.open(path, cache_size=0)
        except HoldfastError as error:
            self.failed["open"] = error
            return
        with store:
            for name, (read, value) in truth.items():
                self._try(store, name, read, value)
            self.problems = [str(problem) for problem in store.verify().problems]

    def _try(self, store, name, read, value):
        try:
            found = read(store)
        except HoldfastError as error:
            self.failed[name] = error
            return
        if found == value:
            self.sound.add(name)
        else:
            self.wrong.append(name)


DAMAGES = {
    "flip": (_flipped, FLIPS),
    "cut": (_truncated, FLIPS // 8),
    "cut-near-the-end": (_shortened, FLIPS // 8),
    "zeros": (_zeroed, FLIPS // 8),
    "zeros-near-the-end": (_zeroed_end, FLIPS // 8),
}


def missing_from(path, outcome, truth):
    """What could be read of the damaged store and is not in the salvaged one."""
    with holdfast.open(path, cache_size=0) as store:
        assert store.verify().problems == ()
        names = [n for n in outcome.sound if n.endswith(("state", "journal"))]
        return [name for name in names if _differs(store, *truth[name])]


def _differs(store, read, value):
    try:
        return read(store) != value
    except HoldfastError:
        return True
