"""Trims of streams whose events are too large for the manifest."""

from datetime import timedelta

import pytest

from holdfast import Unstorable
from holdfast.testing import raises
from support.samples import LONG


@pytest.fixture
def log(memory):
    stream = memory.stream("log")
    for n in range(6):
        stream.append({"n": n, "text": LONG})
    return stream


def numbers(stream):
    return [event.value["n"] for event in stream.events()]


def test_when_all_events_are_too_old_none_stays_and_the_next_goes_on(
    memory, clock, log
):
    last = log.last
    clock.advance(timedelta(days=2))

    assert log.trim(older=timedelta(days=1)) == 6
    assert log.trim(older=timedelta(days=1)) == 0
    assert numbers(log) == []

    assert log.append({"n": 6, "text": LONG}) > last
    assert numbers(log) == [6]
    assert memory.verify().ok


def test_a_trim_before_the_first_event_removes_nothing(log):
    first = log.events()[0].cursor

    assert log.trim(before=first) == 0
    assert numbers(log) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "rule",
    [{}, {"last": 1, "older": timedelta(1)}, {"last": -1}, {"last": 1.5}, {"older": 7}],
)
def test_a_trim_needs_one_rule_that_makes_sense(log, rule):
    with raises(Unstorable):
        log.trim(**rule)

    assert numbers(log) == [0, 1, 2, 3, 4, 5]
