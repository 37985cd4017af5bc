"""What stored messages say, in every dialect and in none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Unstorable
from holdfast.operations.transcripts import answers_of, calls_of, open_calls
from holdfast.testing import raises
from inner.messages import Tally, role_of, text_of, tokens_of, window
from support.transcripts import (
    DIALECTS,
    TURNS,
    chat,
    damaged,
    odd_messages,
    problems,
    transcripts,
)

SYSTEM = {"role": "system", "content": "Be brief."}
HI = {"role": "user", "content": "Hi."}
HELLO = {"role": "assistant", "content": "Hello."}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "found"}


# --- roles and text -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "role"),
    [
        (HI, "user"),
        ({"role": "developer", "content": "Be brief."}, "system"),
        ({"role": "narrator", "content": "Rain."}, "narrator"),
        ({"role": "user", "content": [RESULT]}, "tool"),
        ({"role": "user", "content": [RESULT, {"type": "text"}]}, "user"),
        ({"role": "user", "content": []}, "user"),
        ({"type": "function_call", "call_id": "a"}, "assistant"),
        ({"type": "reasoning"}, "assistant"),
        ({"type": "function_call_output", "call_id": "a"}, "tool"),
        ({"type": "message", "role": "assistant"}, "assistant"),
        ({"type": "item_reference"}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_role_tells_who_speaks(message, role):
    assert role_of(message) == role


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (HI, "Hi."),
        ({"role": "user", "content": None}, ""),
        ({"role": "user", "content": 5}, ""),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            "No.",
        ),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "text": "secret"},
                    {"type": "text", "text": "One"},
                    {"type": "image_url", "image_url": {"url": "https://x"}},
                    "two",
                ],
            },
            "One\ntwo",
        ),
        ({"role": "user", "content": [{**RESULT, "content": [{"text": "a"}]}]}, "a"),
        ({"type": "function_call_output", "output": "found"}, "found"),
        ({"type": "reasoning", "content": [{"text": "secret"}]}, ""),
        ({"role": "tool", "tool_call_id": "a", "content": "found"}, "found"),
        (
            {
                "role": "assistant",
                "content": "Looking",
                "tool_calls": [{"id": "a", "status": "completed", "result": "found"}],
                "reasoning": "secret",
            },
            "Looking\nfound",
        ),
    ],
)
def test_the_text_is_what_a_person_would_read(message, text):
    assert text_of(message) == text


def test_text_in_the_deepest_nesting_is_found():
    message = {"role": "user", "content": "deep"}
    for _ in range(5_000):
        message = {"role": "user", "content": [message]}

    assert text_of(message) == "deep"


# --- calls and answers ----------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_and_answers_are_read_in_every_dialect(dialect):
    turn = TURNS[dialect](["a", "b"])

    calls = [call for n, message in enumerate(turn) for call in calls_of(message, n)]
    assert [(call.id, call.name) for call in calls] == [("a", "look"), ("b", "look")]
    assert all(isinstance(call.arguments, dict) for call in calls)
    assert [id_ for message in turn for id_ in answers_of(message)] == ["a", "b"]


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "a", "name": "look", "arguments": {"n": 1}},
        {"id": "a", "name": "look", "args": {"n": 1}},
        {
            "id": "a",
            "type": "function",
            "function": {"name": "look", "arguments": '{"n":1}'},
        },
        {"id": "a", "type": "custom", "custom": {"name": "look", "input": '{"n":1}'}},
    ],
)
def test_arguments_are_found_and_decoded_wherever_they_stand(entry):
    [call] = calls_of({"role": "assistant", "tool_calls": [entry]})

    assert (call.id, call.name, call.arguments) == ("a", "look", {"n": 1})


def test_broken_arguments_stay_the_text_they_are():
    entry = {"id": "a", "function": {"name": "look", "arguments": '{"n": '}}

    [call] = calls_of({"role": "assistant", "tool_calls": [entry]})

    assert call.arguments == '{"n": '


def test_a_call_kept_twice_in_a_message_is_one_call():
    block = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    message = {
        "role": "assistant",
        "content": [block],
        "tool_calls": [{"id": "a", "name": "look", "args": {}}],
    }

    assert [call.id for call in calls_of(message)] == ["a"]


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_call_that_says_how_it_ended_is_not_open(status):
    calls = [{"id": "a", "name": "look", "status": status}, {"id": "b", "name": "look"}]
    messages = [{"role": "assistant", "tool_calls": calls}]

    assert [call.id for call in open_calls(messages)] == ["b"]


def test_a_call_is_open_until_it_is_answered():
    asking, *answers = [HI, *chat(["a", "b"])][1:]

    assert [(c.id, c.position) for c in open_calls([HI, asking, answers[0]])] == [
        ("b", 1)
    ]
    assert not open_calls([HI, asking, *answers])
    assert open_calls([HI, asking])


# --- counts ---------------------------------------------------------------------------


def test_an_exchange_is_a_user_message_that_was_replied_to():
    unanswered = [HI, HI, HELLO, HELLO, HI]

    found = Tally().after(unanswered)
    assert found == Tally(5, 1, awaiting=True, unanswered=1)
    assert found.user_messages == 3


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calling_a_tool_is_a_reply_and_its_result_no_question(dialect):
    messages = [HI, *TURNS[dialect](["a", "b"]), HELLO]

    assert Tally().after(messages) == Tally(len(messages), exchanges=1)


@given(messages=damaged(), data=st.data())
def test_counting_goes_on_where_it_stopped(messages, data):
    cut = data.draw(st.integers(0, len(messages)))

    whole = Tally().after(messages)

    assert Tally().after(messages[:cut]).after(messages[cut:]) == whole
    assert whole.open == tuple(call.id for call in open_calls(messages))
    assert whole.messages == len(messages)


# --- the window -----------------------------------------------------------------------


def one(message):
    return 1


def test_a_window_holds_the_system_messages_and_the_newest_others():
    talk = [SYSTEM, HI, HELLO, SYSTEM, HI, HELLO]

    assert window(talk, 4, one) == [SYSTEM, SYSTEM, HI, HELLO]
    assert window(talk, 100, one) == talk


def test_a_window_smaller_than_the_system_messages_holds_them_alone():
    assert window([SYSTEM, SYSTEM, HI], 1, one) == [SYSTEM, SYSTEM]
    assert window([HI], 1, lambda message: 2) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_window_takes_a_call_with_its_results_or_not_at_all(dialect):
    turn = TURNS[dialect](["a", "b"])
    talk = [HI, *turn, HELLO]

    assert window(talk, len(turn), one) == [HELLO]
    assert window(talk, len(turn) + 1, one) == [*turn, HELLO]


def test_a_window_does_not_begin_with_a_result_without_its_call():
    orphan = chat(["a"])[1]

    assert window([SYSTEM, orphan, HI], 10, one) == [SYSTEM, HI]
    assert window([HI, SYSTEM, orphan], 2, one) == [SYSTEM]


@given(messages=transcripts(), budget=st.integers(1, 30))
def test_a_window_of_a_valid_transcript_is_valid_and_as_large_as_can_be(
    messages, budget
):
    chosen = window(messages, budget, one)

    assert problems(chosen) == []
    assert len(chosen) <= budget
    assert (chosen == messages) == (len(messages) <= budget)


@pytest.mark.parametrize("budget", [0, -1, 1.5, True, None, "10"])
def test_a_budget_that_is_no_number_of_tokens_is_refused(budget):
    with raises(Unstorable):
        window([HI], budget)


def test_tokens_are_estimated_by_script_and_kind():
    english = tokens_of({"role": "user", "content": "four" * 100})
    chinese = tokens_of({"role": "user", "content": "四" * 100})
    picture = tokens_of({"role": "user", "content": [{"type": "image_url"}]})

    assert english == chinese == 104
    assert picture == 1_004
    assert tokens_of(chat(["a"])[0]) > tokens_of({"role": "assistant", "content": ""})
    assert tokens_of({"holdfast": 1, "role": "user", "tokens": 7}) == 7
    call = {"id": "a", "name": "f", "arguments": {"x": {1, 2}}}
    assert tokens_of({"role": "assistant", "tool_calls": [call]}) > 4


# --- nonsense -------------------------------------------------------------------------


@given(messages=st.lists(odd_messages, max_size=6))
def test_nonsense_is_read_without_raising(messages):
    for message in messages:
        assert isinstance(role_of(message), str)
        assert isinstance(text_of(message), str)
        assert all(isinstance(call.name, str) for call in calls_of(message))
        assert tokens_of(message) >= 0
    tally = Tally().after(messages)
    assert tally.open == tuple(call.id for call in open_calls(messages))
    assert all(message in messages for message in window(messages, 50))
