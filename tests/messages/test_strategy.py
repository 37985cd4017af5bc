"""When to save: each strategy alone, and joined."""

import math

import pytest

from holdfast.errors import Unstorable
from holdfast.strategy import (
    Event,
    after_reply,
    after_tool_batch,
    after_tool_call,
    before,
    every,
    every_seconds,
    never,
)
from holdfast.testing import raises

SECOND = 1_000_000


def event(kind, **known):
    beginning = {"at": 0, "iteration": 1, "saved_at": 0, "saved_iteration": 0}
    return Event(kind=kind, **beginning | known)


REPLY = event("llm_response", open_calls=2)
LAST_REPLY = event("llm_response")
CALL = event("tool_call", tool="deploy", open_calls=2)
RESULT = event("tool_result", open_calls=1)
LAST_RESULT = event("tool_result")
ITERATION = event("iteration")
EVENTS = [ITERATION, REPLY, CALL, RESULT, LAST_RESULT, LAST_REPLY]


@pytest.mark.parametrize(
    ("strategy", "saving"),
    [
        (after_tool_batch(), [LAST_RESULT, LAST_REPLY]),
        (after_tool_call(), [RESULT, LAST_RESULT]),
        (after_reply(), [REPLY, LAST_REPLY]),
        (every(1), [ITERATION]),
        (every(2), []),
        (every_seconds(1), []),
        (before("deploy"), [CALL]),
        (before("delete"), []),
        (never(), []),
        (after_reply() | after_tool_call(), [REPLY, RESULT, LAST_RESULT, LAST_REPLY]),
    ],
    ids=repr,
)
def test_each_strategy_saves_at_its_own_events_and_no_others(strategy, saving):
    assert [event for event in EVENTS if strategy.wants(event)] == saving


def test_every_counts_iterations_since_the_last_save():
    fifth = every(5)

    wishes = [
        fifth.wants(event("iteration", iteration=n, saved_iteration=7))
        for n in (8, 11, 12, 13)
    ]

    assert wishes == [None, None, "save", "save"]


def test_seconds_are_counted_from_the_last_save():
    often = every_seconds(0.5)

    def wish(at):
        return often.wants(event("tool_result", at=at, saved_at=SECOND))

    assert wish(SECOND + SECOND // 2 - 1) is None
    assert wish(SECOND + SECOND // 2) == "save"


def test_a_clock_that_was_set_back_does_not_keep_saves_from_being_made():
    assert every_seconds(60).wants(event("iteration", at=1, saved_at=10)) == "save"


def test_a_checkpoint_before_an_operation_comes_before_a_plain_one():
    joined = every_seconds(1) | before("deploy")
    late = event("tool_call", tool="deploy", at=SECOND)

    assert joined.wants(late) == "pre_operation"
    assert joined.wants(event("tool_call", tool="look", at=SECOND)) == "save"


def test_never_adds_nothing_to_another():
    assert every(5) | never() == every(5) == never() | every(5)
    assert never() | never() == never()


def test_joining_twice_is_joining_once():
    both = after_tool_batch() | every(5)

    assert both | every(5) == both
    assert hash(both | every(5)) == hash(both)
    assert both != after_tool_batch()


def test_only_strategies_can_be_joined():
    with pytest.raises(TypeError):
        every(5) | 5


def test_a_strategy_shows_how_it_is_written():
    joined = (
        after_tool_batch()
        | after_tool_call()
        | after_reply()
        | every(5)
        | every_seconds(1.5)
        | before("deploy", "delete")
    )

    assert repr(joined) == (
        "after_tool_batch() | after_tool_call() | after_reply() | every(5)"
        " | every_seconds(1.5) | before('deploy', 'delete')"
    )
    assert repr(never()) == "never()"


@pytest.mark.parametrize("n", [0, -1, 1.0, True, None, "5"])
def test_less_than_one_iteration_is_refused(n):
    with raises(Unstorable):
        every(n)


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan, True, None, "5"])
def test_a_time_that_never_comes_is_refused(seconds):
    with raises(Unstorable):
        every_seconds(seconds)


@pytest.mark.parametrize("tools", [(), ("",), (None,), (("a", "b"),)])
def test_tools_without_names_are_refused(tools):
    with raises(Unstorable):
        before(*tools)
