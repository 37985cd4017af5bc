"""One caller saves much: the others wait for it, and what is too much is refused."""

import threading
import time

import pytest

import holdfast
from holdfast import Busy
from support.stores import backend_of

pytestmark = pytest.mark.processes

HASTY = 0.4
# Enough that the others are told to wait, for much longer than it takes.
MUCH = "x" * (32 << 20)


def slow_down(store):
    """Let what is announced as large take longer than the others would wait."""
    database = backend_of(store).database

    def wait():
        if time.monotonic() < database._busy_until:
            time.sleep(2 * HASTY)
        return False

    database.writer.set_commit_hook(wait)


@pytest.mark.parametrize(
    ("place", "shared"), [("", False), ("dir:", True)], ids=["two stores", "one folder"]
)
def test_nobody_finds_a_store_busy_because_one_save_is_large(place, shared, tmp_path):
    url = f"{place}{tmp_path}/store"
    with (
        holdfast.open(url, busy_timeout=HASTY) as own,
        holdfast.open(url, busy_timeout=HASTY) as another,
    ):
        other = own if shared else another
        slow_down(own)
        large = threading.Thread(target=lambda: own.thread("large").save({"x": MUCH}))
        large.start()
        found_busy = 0
        while large.is_alive():
            try:
                other.thread("small").append(log=[1])
            except Busy:
                found_busy += 1
        large.join()

        assert found_busy == 0
        assert other.thread("large").load() == {"x": MUCH}
