"""The two ways in which an agent of Strands keeps a session in a store."""

from strands.session import SnapshotSessionManager

from holdfast.adapters.strands import HoldfastSessionManager, HoldfastStorage


def _snapshots(store):
    storage = HoldfastStorage(store)
    return SnapshotSessionManager("s1", storage=storage, save_latest_on="message")


SESSIONS = {
    "repository": lambda store: HoldfastSessionManager("s1", store),
    "snapshots": _snapshots,
}
