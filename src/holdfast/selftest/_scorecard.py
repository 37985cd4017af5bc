"""The rows of the scorecard."""

from __future__ import annotations

from holdfast.selftest._boundaries import boundaries
from holdfast.selftest._damage import bit_rot
from holdfast.selftest._disk_failures import disk_failures
from holdfast.selftest._kills import kills
from holdfast.selftest._power import power_cuts
from holdfast.selftest._rivals import compare_and_swap, history
from holdfast.selftest._row import FILE, FOLDER, SERVER, Row
from holdfast.selftest._sharing import sharing

ALL = (FILE, FOLDER, SERVER)

ROWS = (
    Row(
        1,
        "kills",
        "no acknowledged save is lost when its writer is killed",
        "kills",
        60,
        10_000,
        kills,
        ALL,
    ),
    Row(
        2,
        "boundaries",
        "a call killed at any write was made or was not",
        "points",
        60,
        2_000,
        boundaries,
    ),
    Row(
        3,
        "power-cuts",
        "no acknowledged save is lost when the power fails",
        "cuts",
        40,
        1_000,
        power_cuts,
    ),
    Row(
        4,
        "disk-failures",
        "a full or broken disk gives an error, and nothing is half done",
        "points",
        60,
        2_000,
        disk_failures,
    ),
    Row(
        5,
        "compare-and-swap",
        "of rivals for one version one wins and the others are told",
        "saves",
        160,
        8_000,
        compare_and_swap,
        ALL,
    ),
    Row(
        6,
        "history",
        "reads and appends of many processes agree with one order",
        "operations",
        1_000,
        20_000,
        history,
        ALL,
    ),
    Row(
        10,
        "sharing",
        "forks, threads and cancelled tasks lose nothing",
        "saves",
        300,
        9_000,
        sharing,
        ALL,
    ),
    Row(
        12,
        "bit-rot",
        "nothing wrong is read from damaged files, and verify finds the damage",
        "damages",
        40,
        2_200,
        bit_rot,
    ),
)
