"""Damaged files: what is read is what was saved, or an error of ours is raised.

More flips: HOLDFAST_BITROT_FLIPS=2000 make test
"""

import random

import apsw
import pytest

import holdfast
from holdfast import Corrupt
from holdfast.selftest._damage import build_more
from holdfast.testing import raises
from inner.sqlite import page_checksums
from support.damage import DAMAGES, ReadOutcome, missing_from, truth_of
from support.effort import FLIPS, seed_of
from support.scenario import FILE, Source

# A bit that nothing reads may flip: then only the checksum of its page is repaired.
pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore:wrong page checksums:RuntimeWarning"),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a sound and closed store."""
    path = tmp_path_factory.mktemp("sound") / FILE
    build_more(str(path))
    with holdfast.open(path, **Source("large", 4_000_000).options()) as store:
        # So large that the end of the file belongs to the table of threads.
        for n in range(12):
            thread = store.thread(f"large {n}", metadata={"text": "m" * 1500})
            thread.save({"n": n})
    return path.read_bytes()


@pytest.fixture(scope="module")
def truth(sound, tmp_path_factory):
    """Every single read of the sound store and what it gives, by name."""
    path = tmp_path_factory.mktemp("truth") / FILE
    path.write_bytes(sound)
    with holdfast.open(path, cache_size=0) as store:
        assert store.verify().problems == ()
        return truth_of(store)


@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_wrong_is_read_from_a_damaged_file(damage, sound, truth, tmp_path):
    seed = seed_of(damage)
    chance = random.Random(seed)
    do_damage, count = DAMAGES[damage]
    harmed = 0

    for number in range(count):
        path = tmp_path / f"{number}.db"
        data, where = do_damage(sound, chance)
        path.write_bytes(data)

        outcome = ReadOutcome(str(path), truth)

        assert outcome.wrong == [], f"seed {seed}: {where}"
        could_open = "open" not in outcome.failed
        if could_open and outcome.failed:
            assert outcome.problems, f"seed {seed}: verify missed {where}"
        harmed += bool(outcome.failed)

    assert harmed > count / 10, f"seed {seed}"


@pytest.mark.parametrize("damage", ["flip", "zeros", "zeros-near-the-end"])
def test_salvage_saves_every_thread_that_can_be_read(damage, sound, truth, tmp_path):
    seed = seed_of(f"salvage {damage}")
    chance = random.Random(seed)
    salvaged = 0

    for number in range(FLIPS // 10):
        path, target = tmp_path / f"{number}.db", tmp_path / f"{number}-salvaged.db"
        data, where = DAMAGES[damage][0](sound, chance)
        path.write_bytes(data)
        outcome = ReadOutcome(str(path), truth)
        if "open" in outcome.failed:
            continue
        with holdfast.open(path) as store:
            store.salvage(str(target))

        missing = missing_from(str(target), outcome, truth)

        assert missing == [], f"seed {seed}: {where}"
        salvaged += 1

    assert salvaged > 0, f"seed {seed}"


@pytest.mark.skipif(page_checksums() is None, reason="this SQLite has no checksums")
@pytest.mark.parametrize("reference", ["@", "@~0", "saved"])
def test_a_state_on_a_page_that_changed_is_corrupt_however_it_is_asked_for(
    reference, tmp_path
):
    path = str(tmp_path / FILE)
    with holdfast.open(path) as store:
        store.thread("chat").save({"text": "x" * 1000}, id="saved")
    db = apsw.Connection(path)  # leaves the checksums of the pages as they are
    db.execute("delete from segment")
    db.close()

    with holdfast.open(path) as store, raises(Corrupt) as raised:
        store.thread("chat").load(reference)

    assert "run verify() for the extent" in str(raised.error)
