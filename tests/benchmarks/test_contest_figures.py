"""Ratios and losses are computed from the figures."""

from __future__ import annotations

import dataclasses

from benchmarks.contest.chart import Bar, chart
from benchmarks.contest.figures import Figures, Recorded, losses, recorded
from benchmarks.contest.peers import PEERS

OURS = Figures(
    peer=PEERS["save"],
    recorded=Recorded(100, 1_000, 2_000, first_turns=0.001, last_turns=0.001),
    first_load=0.01,
    last_ten=0.01,
    acknowledged=10,
    lost=0,
)


def theirs(**changes):
    return dataclasses.replace(OURS, peer=PEERS["blob"], **changes)


def test_a_store_that_is_better_in_something_is_a_loss_of_ours_in_just_that():
    better = theirs(
        recorded=Recorded(100, 1_000, 1_000, first_turns=0.001, last_turns=0.004),
        last_ten=0.005,
    )

    [(found, ratios)] = losses({"save": OURS, "blob": better})

    assert found is better
    assert ratios == {"on disk": 0.5, "last ten": 0.5}
    assert better.ratios(OURS)["a turn"] == 4


def test_equal_figures_noise_and_our_own_variants_are_no_losses():
    noise = theirs(first_load=0.0099)
    variant = dataclasses.replace(OURS, peer=PEERS["compressed"], first_load=0.001)

    assert not list(losses({"save": OURS, "blob": noise, "append": variant}))


def test_a_store_without_our_counterpart_is_not_compared():
    assert not list(losses({"blob": theirs(first_load=0.001)}))


def test_a_store_that_stopped_is_compared_but_is_no_loss():
    half = Recorded(50, 500, 1_000, 0.001, 0.001, stopped="after 2 s")
    stopped = theirs(recorded=half, first_load=0.001)

    assert stopped.ratios(OURS)["on disk"] == 0.5
    assert not list(losses({"save": OURS, "blob": stopped}))


def test_the_first_and_the_last_turns_stand_for_the_ends():
    short = recorded([1, 9, 3], raw=10, disk=20, stopped="")
    long = recorded([1] * 50 + [7] * 900 + [3] * 50, raw=10, disk=20, stopped="")
    one = recorded([2], raw=10, disk=20, stopped="after 0 s")

    assert [(r.first_turns, r.last_turns) for r in (short, long)] == [(1, 3), (1, 3)]
    assert long.growth == 3
    assert (one.turns, one.growth) == (1, 1)


def test_the_chart_names_every_store_with_its_size_smallest_first():
    bars = [Bar("<large>", 5_000_000, 50), Bar("Holdfast", 120_000, 1.2, is_ours=True)]

    drawn = chart(bars, turns=7, raw=100_000)

    labels = ["100 kB (1 x)", "Holdfast", "120 kB (1.2 x)", "&lt;large&gt;", "5 MB (50"]
    assert [drawn.index(label) for label in labels] == sorted(
        drawn.index(label) for label in labels
    )
    assert "A 7-turn chat" in drawn
