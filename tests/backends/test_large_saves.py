"""One caller saves much: the others wait for it, and what is too much is refused."""

import threading

import pytest

import holdfast
from holdfast import Busy

HASTY = 0.2
# More than is written within the timeout.
MUCH = "x" * (48 << 20)


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
