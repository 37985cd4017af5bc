"""Whatever happens to process, power or disk: a call was made, or it was not.

Earlier systems left torn or empty files behind: their mistakes 0.7, 2.1, 3.3 and 4.2.

More rounds: HOLDFAST_CRASH_ROUNDS=10000 make test
"""

import itertools
import random
from dataclasses import replace
from functools import partial

import pytest

import holdfast
from holdfast.testing.faults import Fault, FaultyDisk, io_error
from holdfast.testing.trials import Target
from holdfast.testing.trials.disk_failures import FAILURES, FailingCall, failing
from holdfast.testing.trials.power import Machine, cuts, found_after
from holdfast.testing.trials.scenario import (
    FILE_PLACE,
    FOLDER_PLACE,
    STEPS,
    Source,
    address,
    build_for,
    copy_folder,
    dump,
    goes_on,
    problems_of,
)
from support.effort import ROUNDS, THOROUGH, seed_of
from support.programs import run_program
from support.stores import backend_of

CUTS = ROUNDS // 3
CALLS = ["set-up", "recover", "migrate", "backup", *STEPS]
PLACES = pytest.mark.parametrize(
    "place", [FILE_PLACE, FOLDER_PLACE], ids=["file", "folder"]
)
FOLDER_CALLS = ["append", "label", "delete-thread"]
if THOROUGH:
    FOLDER_CALLS = [call for call in CALLS if call != "migrate"]
# Several calls a program: it takes as long to start one as to try ten points.
KILLED = [
    (place, calls[first : first + 4])
    for place, calls in ((FILE_PLACE, CALLS), (FOLDER_PLACE, FOLDER_CALLS))
    for first in range(0, len(calls), 4)
]
# At which of its writes a call meets a failing disk: usually at some of them.
STRIDE = 1 if THOROUGH else 2
LONG_STRIDE = 1 if THOROUGH else 3
BREAKDOWNS = ["full-torn", "full-for-a-while", "broken"]
BROKEN = [
    (call, place, failure)
    for place in (FILE_PLACE, FOLDER_PLACE)
    for number, call in enumerate(STEPS)
    for kind, failure in enumerate(BREAKDOWNS)
    if THOROUGH
    or (number % 3 == kind and (place == FILE_PLACE or call in FOLDER_CALLS))
]
# In a folder, the end of a file that a crash has torn is cut off and reported.
pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore:.*was never finished:RuntimeWarning"),
]


# --- killed ---------------------------------------------------------------------------


def _listed(names):
    return names if isinstance(names, str) else "+".join(names)


@pytest.mark.parametrize(("place", "calls"), KILLED, ids=_listed)
def test_calls_killed_at_any_write_were_made_or_were_not(place, calls, tmp_path):
    reports = run_program("kill_at_each_write", tmp_path, place, *calls)

    assert [(report["call"], report["wrong"]) for report in reports] == [
        (call, []) for call in calls
    ]
    assert all(report["points"] >= 10 for report in reports)
    assert all(report["tried"] > report["points"] / 3 for report in reports)


@pytest.mark.parametrize("half", [pytest.param(0, marks=pytest.mark.smoke), 1])
def test_no_acknowledged_save_is_lost_when_writers_are_killed(half, tmp_path):
    seed = seed_of("kills", half)

    [report] = run_program("random_kills", tmp_path, seed, ROUNDS // 2)

    assert report["wrong"] == [], f"seed {seed}"
    assert report["acknowledged"] > ROUNDS / 10


# --- the power fails ------------------------------------------------------------------


class BusyMachine(Machine):
    """A machine whose log is brought into the database often.

    Then the log is overwritten from its start often.
    """

    def settle(self, store):
        backend_of(store).database.writer.wal_autocheckpoint(30)


def _cuts(tmp_path, place, seed, durability):
    target = Target("dir" if place == FOLDER_PLACE else "file", str(tmp_path))
    machine = partial(BusyMachine, durability=durability)
    return cuts(target, CUTS, random.Random(seed), machine)


def _found_after(folder, place):
    """What is in the store after a cut; it is sound and can be written to."""
    found, wrong = found_after(folder, place)
    assert wrong == []
    return found


@PLACES
@pytest.mark.parametrize(
    "run", [pytest.param(0, marks=pytest.mark.smoke), *range(1, 4)]
)
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

    for machine, folder, seen in _cuts(tmp_path, FILE_PLACE, seed, "normal"):
        found = _found_after(folder, FILE_PLACE)

        assert found in machine.allowed(seen), f"seed {seed}, {folder}"
        losses += found not in machine.states[max(0, seen - 1) :]

    assert losses > 0, f"seed {seed}: the simulated power cuts cut nothing"


# --- the disk fails -------------------------------------------------------------------

SOME = [
    (place, failure)
    for place in (FILE_PLACE, FOLDER_PLACE)
    for failure in FAILURES
    if THOROUGH or place == FILE_PLACE or failure in {"full-torn", "broken-for-a-while"}
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


def _fault(failure, at):
    return replace(FAILURES[failure], at=at)


@pytest.mark.parametrize(("call", "place", "failure"), BROKEN)
def test_a_call_whose_disk_fails_was_made_or_was_not_and_can_be_made_again(
    call, failure, place, disk, tmp_path
):
    target = Target("dir" if place == FOLDER_PLACE else "file", str(tmp_path))
    made = FailingCall(call, target, disk)

    for at in range(1 + CALLS.index(call) % STRIDE, made.calls + 1, STRIDE):
        assert list(made.wrong(_fault(failure, at))) == [], f"{call}, {failure} at {at}"


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
            disk.arm(_fault(failure, at))
            error = failing(STEPS["save"][0], store)
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
    for at in itertools.count(1, LONG_STRIDE):
        folder = tmp_path / str(at)
        folder.mkdir()
        path = address(str(folder), place)
        disk.arm(_fault(failure, at))
        error = failing(lambda path: disk.open(path).close(), path)
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
    for at in itertools.count(1, LONG_STRIDE):
        path = copy_folder(start, tmp_path / "failed", place)
        store = _opened(disk, path, Source("call", 2_000_000))
        STEPS["save"][0](store)
        saved = dump(store)
        disk.arm(_fault(failure, at))
        error = failing(lambda store: store.close(), store)
        calls = disk.heal()

        assert error is None or error.code in {"disk_full", "io_error"}
        with holdfast.open(path, cache_size=0) as store:
            assert dump(store) == saved
        if calls < at:
            break


@PLACES
@pytest.mark.smoke
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
            error = failing(dump, store)
            calls = disk.heal()

            assert error is None or error.code == "io_error"
            assert dump(store) == whole
        failures += error is not None
        if calls < at:
            break

    assert failures > 5
