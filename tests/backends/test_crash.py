"""Whatever happens to process, power or disk: a call was made, or it was not.

Earlier systems left torn or empty files behind: their mistakes 0.7, 2.1, 3.3 and 4.2.

More rounds: HOLDFAST_CRASH_ROUNDS=10000 make test
"""

import contextlib
import itertools
import os
import random
import shutil

import pytest

import holdfast
from holdfast import Agent, Conflict, HoldfastError, Message, NotFound, Retention
from holdfast.faults import Fault, FaultyDisk, Platter, disk_full, io_error
from support.effort import ROUNDS, THOROUGH, seed_of
from support.programs import run_program
from support.scenario import (
    FILE,
    FOLDER,
    STEPS,
    Source,
    address,
    build_for,
    copy_folder,
    dump,
    goes_on,
    messages,
    problems_of,
)
from support.stores import backend_of

CUTS = ROUNDS // 3
CALLS = ["set-up", "recover", "migrate", "backup", *STEPS]
PLACES = pytest.mark.parametrize("place", [FILE, FOLDER], ids=["file", "folder"])
FOLDER_CALLS = ["append", "label", "delete-thread"]
if THOROUGH:
    FOLDER_CALLS = [call for call in CALLS if call != "migrate"]
KILLED = [(call, FILE) for call in CALLS] + [(call, FOLDER) for call in FOLDER_CALLS]
BREAKDOWNS = ["full-torn", "full-for-a-while", "broken"]
BROKEN = [
    (call, place, failure)
    for place in (FILE, FOLDER)
    for number, call in enumerate(STEPS)
    for kind, failure in enumerate(BREAKDOWNS)
    if THOROUGH or (number % 3 == kind and (place == FILE or call in FOLDER_CALLS))
]
# In a folder, the end of a file that a crash has torn is cut off and reported.
pytestmark = pytest.mark.filterwarnings("ignore:.*was never finished:RuntimeWarning")


# --- killed ---------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "place"), KILLED)
def test_a_call_killed_at_any_write_was_made_or_was_not(call, place, tmp_path):
    [report] = run_program("kill_at_each_write", tmp_path, place, call)

    assert report["wrong"] == []
    assert report["points"] >= 10


@pytest.mark.parametrize("half", [0, 1])
def test_no_acknowledged_save_is_lost_when_writers_are_killed(half, tmp_path):
    seed = seed_of("kills", half)

    [report] = run_program("random_kills", tmp_path, seed, ROUNDS // 2)

    assert report["wrong"] == [], f"seed {seed}"
    assert report["acknowledged"] > ROUNDS / 10


# --- the power fails ------------------------------------------------------------------


class Machine:
    """A store in use on a disk that can lose its power at any call."""

    def __init__(self, folder, place, chance, durability):
        self.folder, self.place = folder, place
        self.chance, self.durability = chance, durability
        self.platter = Platter(folder, sector=chance.choice((512, 4096)))
        self.disk = FaultyDisk(f"disk {folder}", syncing=False, platter=self.platter)
        self.source = Source(os.path.basename(folder), chance.randrange(10**9))
        self.states = []
        self.cuts = {}

    def run(self, steps):
        """Do things; cut the power now and then, in copies."""
        self.disk.arm(Fault(at=1, lasting=True, effect=self._maybe_cut))
        store = self._open()
        self.states.append(dump(store))
        for step in self.chance.choices(STEPS_IN_USE, k=steps):
            with contextlib.suppress(NotFound, Conflict):
                step(store, f"{len(self.states)}-{self.source.ids.id()}")
            if self.chance.random() < 0.15:
                store.close()
                store = self._open()
            self.states.append(dump(store))
        store.close()
        self.disk.heal()
        self.disk.remove()

    def _open(self):
        path = address(self.folder, self.place)
        options = {"durability": self.durability, **self.source.options()}
        store = self.disk.open(path, **options)
        # Brought into the database often, the log is overwritten from its start often.
        backend_of(store).database.writer.wal_autocheckpoint(30)
        return store

    def _maybe_cut(self, call):
        if self.chance.random() < 0.03:
            name = f"{self.folder}-cut-{len(self.cuts)}"
            self.platter.cut(name, self.chance)
            self.cuts[name] = len(self.states)

    def allowed(self, seen):
        """What a cut may leave when so many states had been seen."""
        first = max(0, seen - 1) if self.durability == "full" else 0
        return self.states[first : seen + 1]


def _append(store, name):
    store.thread("chat").append(messages=messages(0, 3, 400))


def _save(store, name):
    store.thread("plan").save({"steps": messages(0, 9), "name": name}, label=name)


def _fork(store, name):
    store.thread("chat").fork(name)


def _rewind(store, name):
    store.thread("chat").rewind("@~1")


def _record(store, name):
    store.thread("chat").record(name, {"paid": name})


def _prune(store, name):
    store.prune(Retention(last=3))


def _compact(store, name):
    store.compact()


def _delete(store, name):
    store.thread("plan").delete()


def _start_anew(store, name):
    store.thread("plan").save({"steps": []}, expect=None)


def _save_agent(store, name):
    store.agents.save(Agent(id="scout", state={"name": name}))


def _converse(store, name):
    talk = [Message.user(f"{name} " * 300, id=name, at=0)]
    store.conversations.create(name, agent="scout", messages=talk)


def _checkpoint_agent(store, name):
    store.agents.checkpoint("scout", id=name)


STEPS_IN_USE = [_append] * 8 + [_save] * 4
STEPS_IN_USE += [_save_agent, _converse, _checkpoint_agent, _checkpoint_agent]
STEPS_IN_USE += [_fork, _rewind, _record, _prune, _compact, _delete, _start_anew]


def _cuts(tmp_path, place, seed, durability):
    """Cut the power of machine after machine, most with the disk of the one before."""
    chance = random.Random(seed)
    done, survivor = 0, str(tmp_path / "empty")
    for number in itertools.count():
        start = str(tmp_path / f"machine-{number}")
        if number % 5 == 0:
            os.mkdir(start)
        else:
            shutil.copytree(survivor, start)
        machine = Machine(start, place, chance, durability)
        machine.run(steps=10)
        for folder, seen in machine.cuts.items():
            yield machine, folder, seen
        done += len(machine.cuts)
        if done >= CUTS:
            return
        survivor = chance.choice([start, *machine.cuts])


def _found_after(folder, place):
    """What is in the store after a cut; it is sound and can be written to."""
    path = copy_folder(folder, f"{folder}-reopened", place)
    with holdfast.open(path, durability="normal", cache_size=0) as store:
        found = dump(store)
        assert problems_of(store) == []
        assert goes_on(store) is None
    return found


@PLACES
@pytest.mark.parametrize("run", range(4))
def test_no_acknowledged_save_is_lost_when_the_power_fails(run, place, tmp_path):
    seed = seed_of("power", run)

    for machine, folder, seen in _cuts(tmp_path, place, seed, "full"):
        found = _found_after(folder, place)

        assert found in machine.allowed(seen), f"seed {seed}, {folder}"


@pytest.mark.parametrize("run", range(2))
def test_normal_durability_loses_the_last_saves_whole_when_the_power_fails(
    run, tmp_path
):
    seed = seed_of("power, normal", run)
    losses = 0

    for machine, folder, seen in _cuts(tmp_path, FILE, seed, "normal"):
        found = _found_after(folder, FILE)

        assert found in machine.allowed(seen), f"seed {seed}, {folder}"
        losses += found not in machine.states[max(0, seen - 1) :]

    assert losses > 0, f"seed {seed}: the simulated power cuts cut nothing"


# --- the disk fails -------------------------------------------------------------------

FAILURES = {
    "full": {"effect": disk_full},
    "full-torn": {"effect": disk_full, "torn": True},
    "full-for-a-while": {"effect": disk_full, "lasting": True},
    "broken": {"effect": io_error},
    "broken-for-a-while": {"effect": io_error, "lasting": True},
}
SOME = [
    (place, failure)
    for place in (FILE, FOLDER)
    for failure in FAILURES
    if THOROUGH or place == FILE or failure in {"full-torn", "broken-for-a-while"}
]


@pytest.fixture
def disk():
    disk = FaultyDisk("failing", syncing=False)
    yield disk
    disk.remove()


def _start(tmp_path, call, place):
    folder = tmp_path / "start"
    folder.mkdir()
    build_for(call, address(str(folder), place))
    return str(folder)


@pytest.fixture
def start(tmp_path, place):
    return _start(tmp_path, "save", place)


def _opened(disk, path, source):
    disk.heal()
    source.reset()
    return disk.open(path, **source.options())


def _failing(step, store):
    """The error of a step, ``None`` if it was made all the same."""
    try:
        step(store)
    except HoldfastError as error:
        return error
    return None


def _told(error, old, new):
    """What a store may hold after a call, by the words of its error."""
    done = ("was saved, but a power cut", "stays removed")
    if error is None or any(words in str(error) for words in done):
        return [new]
    return [old] if "was not saved" in str(error) else [old, new]


@pytest.mark.parametrize(("call", "place", "failure"), BROKEN)
def test_a_call_whose_disk_fails_was_made_or_was_not_and_can_be_made_again(
    call, failure, place, disk, tmp_path
):
    source = Source("call", 2_000_000)
    *before, step = STEPS[call]
    start = _start(tmp_path, call, place)
    path = copy_folder(start, tmp_path / "whole", place)
    with _opened(disk, path, source) as store:
        for earlier in before:
            earlier(store)
        old = dump(store)
        at_first = source.times.value, source.ids.value
        disk.arm(None)
        step(store)
        writes = disk.heal()
        new = dump(store)

    for at in range(1, writes + 1):
        path = copy_folder(start, tmp_path / "failed", place)
        with _opened(disk, path, source) as store:
            for earlier in before:
                earlier(store)
            disk.arm(Fault(at=at, **FAILURES[failure]))
            error = _failing(step, store)
            disk.heal()
            found = dump(store)
            where = f"{call}, {failure} at call {at}: {error!r}"
            assert error is None or error.code in {"disk_full", "io_error"}, where
            assert found in _told(error, old, new), where
            if found == old:
                source.times.value, source.ids.value = at_first
                step(store)
            assert dump(store) == new, where
            assert problems_of(store) == [], where
            assert goes_on(store) is None, where


@PLACES
@pytest.mark.parametrize("failure", FAILURES)
def test_a_save_repeated_with_its_id_after_a_failure_is_made_once(
    failure, place, disk, start, tmp_path
):
    for at in itertools.count(1):
        path = copy_folder(start, tmp_path / "failed", place)
        with _opened(disk, path, Source("call", 2_000_000)) as store:
            thread = store.thread("main")
            history = thread.history(None)
            disk.arm(Fault(at=at, **FAILURES[failure]))
            error = _failing(STEPS["save"][0], store)
            calls = disk.heal()
            STEPS["save"][0](store)

            assert len(thread.history(None)) == len(history) + 1
            assert thread.head.id == "saved"
        if error is None and calls < at:
            break


@pytest.mark.parametrize(("place", "failure"), SOME)
def test_a_store_whose_disk_fails_while_it_is_set_up_can_be_set_up_later(
    failure, place, disk, tmp_path
):
    for at in itertools.count(1):
        folder = tmp_path / str(at)
        folder.mkdir()
        path = address(str(folder), place)
        disk.arm(Fault(at=at, **FAILURES[failure]))
        error = _failing(lambda path: disk.open(path).close(), path)
        calls = disk.heal()

        assert error is None or error.code in {"disk_full", "io_error"}
        with disk.open(path) as store:
            assert goes_on(store) is None
            assert problems_of(store) == []
        if error is None and calls < at:
            break


@pytest.mark.parametrize(("place", "failure"), SOME)
def test_a_disk_that_fails_while_a_store_is_closed_loses_nothing(
    failure, place, disk, start, tmp_path
):
    for at in itertools.count(1):
        path = copy_folder(start, tmp_path / "failed", place)
        store = _opened(disk, path, Source("call", 2_000_000))
        STEPS["save"][0](store)
        saved = dump(store)
        disk.arm(Fault(at=at, **FAILURES[failure]))
        error = _failing(lambda store: store.close(), store)
        calls = disk.heal()

        assert error is None or error.code in {"disk_full", "io_error"}
        with holdfast.open(path, cache_size=0) as store:
            assert dump(store) == saved
        if calls < at:
            break


@PLACES
def test_a_read_that_fails_raises_and_the_next_one_succeeds(
    place, disk, start, tmp_path
):
    path = copy_folder(start, tmp_path / "failed", place)
    with disk.open(path) as store:
        whole = dump(store)
    failures = 0

    for at in itertools.count(1):
        with disk.open(path, cache_size=0) as store:
            disk.arm(Fault(at=at, effect=io_error, kinds=frozenset({"read"})))
            error = _failing(dump, store)
            calls = disk.heal()

            assert error is None or error.code == "io_error"
            assert dump(store) == whole
        failures += error is not None
        if calls < at:
            break

    assert failures > 5
