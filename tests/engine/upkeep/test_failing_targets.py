"""Exports, backups and salvages to a disk that does not take them."""

import os
import resource
import signal

import pytest

import holdfast
from holdfast import HoldfastError
from holdfast.testing.faults import Fault, FaultyDisk, disk_full

SMALL = 150_000


@pytest.fixture(params=["", "dir:"], ids=["file", "folder"])
def store(request, tmp_path):
    (tmp_path / "source").mkdir()
    with holdfast.open(f"{request.param}{tmp_path}/source/store") as store:
        store.thread("a").save({"x": os.urandom(2 * SMALL)})
        yield store


@pytest.fixture
def target(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    return target


@pytest.fixture
def small_files():
    """The system refuses to make files longer than this."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("verb", ["export_to", "export_lines", "backup"])
def test_a_target_that_cannot_be_written_is_named_and_nothing_is_left(
    verb, store, target, small_files
):
    path = str(target / "new")

    with pytest.raises(HoldfastError, match="was not written") as raised:
        getattr(store, verb)(path)

    assert path in str(raised.value)
    assert "choose another place" in str(raised.value)
    assert raised.value.code == "io_error"
    assert os.listdir(target) == []


def test_a_salvage_that_is_not_complete_says_so(store, target, small_files):
    with pytest.raises(HoldfastError, match="not complete: remove it, salvage again"):
        store.salvage(str(target / "new"))


def test_a_prune_that_stops_half_way_says_that_it_did(tmp_path):
    disk = FaultyDisk("filling")
    with disk.open(str(tmp_path / "store.db")) as store:
        for name in (f"{n}" for n in range(40)):
            store.thread(name).save(1)
            store.thread(name).save(2)

        def fill_up(done, of):
            disk.arm(Fault(at=1, effect=disk_full, lasting=True) if done else None)

        with pytest.raises(HoldfastError, match="stays removed: prune again"):
            store.prune(holdfast.Retention(last=1, at_most=None), progress=fill_up)
        disk.heal()

        assert 40 < store.stats().checkpoints < 80
    disk.remove()
