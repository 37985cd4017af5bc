"""How often a store is damaged in each way, and what must still be read of it."""

import holdfast
from holdfast import HoldfastError
from holdfast.testing.trials import damage
from support.effort import FLIPS

DAMAGES = {
    name: (made, FLIPS if name == "flip" else max(FLIPS // 8, 12))
    for name, made in damage.DAMAGES.items()
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
