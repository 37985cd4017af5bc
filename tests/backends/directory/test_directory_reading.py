"""A folder that is only read: nothing in it is made or changed, and all is seen."""

import shutil

import pytest

import holdfast
from holdfast import Corrupt, NotFound, Unsupported
from holdfast.testing.trials.scenario import (
    OPERATIONS,
    Source,
    build,
    dump,
    problems_of,
)
from support.file_clock import next_tick

WORK = ".holdfast"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def url(folder):
    return f"dir:{folder}"


@pytest.fixture
def built(url):
    """A store with something of everything, closed, and all that is in it."""
    build(url)
    with holdfast.open(url, **Source("more", 3_000_000).options()) as store:
        for name in ("save", "fork", "label", "tag", "describe", "record", "prune"):
            OPERATIONS[name](store)
        return dump(store)


def everything_in(folder):
    """Every file below a folder with its bytes."""
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_reading_only_makes_no_file_and_changes_none(url, folder, built):
    before = everything_in(folder)

    with holdfast.open(url, read_only=True, cache_size=0) as store:
        assert dump(store) == built
        assert problems_of(store) == []
        with pytest.raises(Unsupported) as raised:
            store.thread("main").save({})
        assert everything_in(folder) == before

    assert raised.value.code == "read_only"
    assert everything_in(folder) == before


def test_reading_only_needs_no_index(url, folder, built):
    shutil.rmtree(folder / WORK)
    before = everything_in(folder)

    with holdfast.open(url, read_only=True, cache_size=0) as store:
        assert dump(store) == built

    assert everything_in(folder) == before


def test_reading_only_what_does_not_exist_makes_nothing(url, folder):
    with pytest.raises(NotFound, match="not a store"):
        holdfast.open(url, read_only=True)

    assert not folder.exists()


def test_a_reader_sees_what_a_living_writer_saved(url):
    with holdfast.open(url) as writer:
        writer.thread("t").save(0)
        with holdfast.open(url, read_only=True) as reader:
            for n in range(1, 4):
                writer.thread("t").save(n)
                writer.thread(f"new {n}").save(n)

                assert reader.thread("t").load() == n
                assert len(reader.threads()) == n + 1
            writer.delete("t")
            assert reader.thread("t").head is None


def test_a_damaged_file_is_told_to_readers_too(url, folder, built):
    path = folder / "main-1.jsonl"
    next_tick(folder)
    path.write_bytes(path.read_bytes().replace(b'"second"', b'"sekond"', 1))

    with holdfast.open(url, read_only=True) as store:
        assert store.thread("other").load()
        with pytest.raises(Corrupt, match=r"main-1\.jsonl"):
            store.thread("main").load()
