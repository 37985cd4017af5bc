"""A transcript that was cut anywhere can be sent to its provider again."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Unstorable
from holdfast.operations.transcripts import calls_of, open_calls
from holdfast.testing import raises
from inner.messages import repaired
from support.transcripts import (
    DIALECTS,
    TURNS,
    anthropic,
    chat,
    damaged,
    odd_messages,
    ours,
    problems,
    responses,
    transcripts,
)

HOWS = ("interrupted", "drop", "propose")
how = pytest.mark.parametrize("how", HOWS)
HI = {"role": "user", "content": "Hi."}


def kinds(mended):
    return [repair.kind for repair in mended.repairs]


# --- any damage -----------------------------------------------------------------------


@how
@given(messages=damaged())
def test_any_damage_is_mended_and_mended_once(how, messages):
    before = copy.deepcopy(messages)

    mended = repaired(messages, how)

    assert problems(mended.messages) == []
    assert not open_calls(mended.messages)
    assert messages == before
    again = repaired(mended.messages, how)
    assert again.messages == mended.messages
    assert again.repairs == ()


@pytest.mark.parametrize("dialect", DIALECTS)
@how
@given(data=st.data())
def test_any_damage_within_a_dialect_is_mended(how, dialect, data):
    messages = data.draw(damaged((dialect,)))

    mended = repaired(messages, how)

    assert problems(mended.messages) == []
    assert (mended.repairs == ()) == (problems(messages) == [])


@how
@given(messages=transcripts())
def test_a_valid_transcript_comes_back_as_it_is(how, messages):
    mended = repaired(messages, how)

    assert mended.repairs == ()
    assert list(map(id, mended.messages)) == list(map(id, messages))


@given(messages=transcripts(), data=st.data())
def test_a_transcript_cut_anywhere_loses_nothing_but_what_is_reported(messages, data):
    cut = messages[: data.draw(st.integers(0, len(messages)))]

    mended = repaired(cut, "interrupted")

    assert set(kinds(mended)) <= {"interrupted"}
    assert mended.messages[: len(cut)] == cut


@how
@given(messages=transcripts(), data=st.data())
def test_results_that_are_known_are_used_whatever_else_is_done(how, messages, data):
    cut = messages[: data.draw(st.integers(0, len(messages)))]
    known = {call.id: {"n": 1} for call in open_calls(cut)}

    mended = repaired(cut, how, known)

    assert problems(mended.messages) == []
    assert mended.messages[: len(cut)] == cut
    assert set(kinds(mended)) <= {"recorded"}


@how
@given(messages=st.lists(odd_messages, max_size=8))
def test_nonsense_raises_nothing_and_is_changed_only_with_a_report(how, messages):
    mended = repaired(messages, how)

    assert repaired(mended.messages, how).repairs == ()
    is_same = list(map(id, mended.messages)) == list(map(id, messages))
    assert is_same == (mended.repairs == ())


def test_another_way_to_repair_is_refused():
    with raises(Unstorable) as refused:
        repaired([], "ignore")

    assert "interrupted" in str(refused.error)


# --- calls without an answer ----------------------------------------------------------


def test_an_interrupted_call_of_openai_chat_gets_a_tool_message():
    cut = [HI, *chat(["a", "b"])[:2]]

    mended = repaired(cut, "interrupted")

    assert mended.messages[:3] == cut
    [made] = mended.messages[3:]
    assert (made["role"], made["tool_call_id"]) == ("tool", "b")
    assert "may or may not have taken effect" in made["content"]
    [repair] = mended.repairs
    assert (repair.kind, repair.call_id, repair.name) == ("interrupted", "b", "look")
    assert (repair.arguments, repair.position) == ({"n": 1}, 1)


def test_an_interrupted_call_of_openai_responses_gets_an_output():
    cut = [HI, *responses(["a"])[:2]]

    mended = repaired(cut, "interrupted")

    assert mended.messages[:3] == cut
    [made] = mended.messages[3:]
    assert (made["type"], made["call_id"]) == ("function_call_output", "a")
    assert "interrupted" in made["output"]


def test_an_interrupted_call_of_anthropic_joins_the_results_that_are_there():
    asking, answer = anthropic(["a", "b"], variant=1)
    partial = {"role": "user", "content": [answer["content"][0], answer["content"][2]]}

    mended = repaired([HI, asking, partial], "interrupted")

    first, made, text = mended.messages[2]["content"]
    assert (first, text) == (answer["content"][0], answer["content"][2])
    assert (made["type"], made["tool_use_id"]) == ("tool_result", "b")
    assert made["is_error"] is True


def test_an_interrupted_call_of_anthropic_gets_a_user_message_of_its_own():
    asking, _ = anthropic(["a"])

    mended = repaired([asking, HI], "interrupted")

    assert [m["role"] for m in mended.messages] == ["assistant", "user", "user"]
    assert mended.messages[1]["content"][0]["tool_use_id"] == "a"
    assert mended.messages[2] is HI


def test_an_interrupted_call_of_ours_gets_a_message_of_ours():
    cut = ours(["a"])[:1]

    mended = repaired(cut, "interrupted")

    made = mended.messages[1]
    assert (made["holdfast"], made["role"], made["tool_call_id"]) == (1, "tool", "a")
    assert made["name"] == "look"


def test_a_call_that_says_how_it_ended_needs_no_result():
    messages = ours(["a"], variant=1)

    assert repaired(messages, "interrupted").messages == messages
    assert repaired(messages, "drop").repairs == ()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dropped_call_takes_a_message_along_that_says_nothing_else(dialect):
    asking = [message for message in TURNS[dialect](["a"]) if calls_of(message)]

    assert repaired([HI, *asking], "drop").messages == [HI]


@pytest.mark.parametrize(
    ("cut", "left"),
    [
        (chat(["a", "b"])[:2], chat(["a"])),
        (ours(["a", "b"])[:2], ours(["a"])),
        (responses(["a", "b"])[:-1], responses(["a", "b"])[:2] + responses(["a"])[-1:]),
    ],
    ids=["chat", "ours", "responses"],
)
def test_a_dropped_call_leaves_the_others_of_its_message(cut, left):
    mended = repaired(cut, "drop")

    assert mended.messages == left
    assert [(r.kind, r.call_id) for r in mended.repairs] == [("dropped", "b")]


def test_a_dropped_call_leaves_what_its_message_said():
    cut = chat(["a"], variant=1)[:1]

    mended = repaired(cut, "drop")

    assert mended.messages == [{"role": "assistant", "content": "I look."}]
    assert kinds(mended) == ["dropped"]


def test_thinking_alone_is_no_message():
    asking, _ = anthropic(["a"], variant=1)

    assert repaired([HI, asking], "drop").messages == [HI]


def test_reasoning_goes_with_the_only_call_it_led_to():
    reasoning, first, second, output, _ = responses(["a", "b"])

    assert repaired([HI, reasoning, first], "drop").messages == [HI]
    assert repaired([reasoning, first, second, output], "drop").messages == [
        reasoning,
        first,
        output,
    ]


def test_a_call_whose_result_must_be_a_picture_is_dropped():
    call = {"type": "computer_call", "call_id": "a", "action": {"type": "click"}}

    mended = repaired([HI, call], "interrupted")

    assert mended.messages == [HI]
    [repair] = mended.repairs
    assert (repair.kind, repair.name) == ("dropped", "computer_call")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_proposed_call_can_be_appended_with_its_result(dialect):
    whole = TURNS[dialect](["a", "b"])
    cut = [HI, *[message for message in whole if calls_of(message)]]

    mended = repaired(cut, "propose")

    assert mended.messages == [HI]
    assert kinds(mended) == ["proposed", "proposed"]
    for repair in mended.repairs:
        [call] = calls_of(repair.message)
        assert (call.id, call.name) == (repair.call_id, "look")
        answer = TURNS[dialect]([call.id])[-1]
        assert problems([HI, repair.message, answer]) == []


def test_a_proposal_of_anthropic_begins_with_the_thinking():
    asking, _ = anthropic(["a"], variant=1)

    [repair] = repaired([HI, asking], "propose").repairs

    assert [part["type"] for part in repair.message["content"]] == [
        "thinking",
        "tool_use",
    ]


# --- results in the wrong place -------------------------------------------------------


@how
def test_results_are_moved_back_to_their_call(how):
    asking, first, second = chat(["a", "b"])

    mended = repaired([asking, first, HI, second], how)

    assert mended.messages == [asking, first, second, HI]
    [repair] = mended.repairs
    assert (repair.kind, repair.call_id, repair.position) == ("moved", "b", 3)


@how
def test_results_of_anthropic_are_put_into_one_message_before_its_text(how):
    asking, answer = anthropic(["a", "b"])
    first, second = answer["content"]
    text = {"type": "text", "text": "And?"}
    parted = [
        {"role": "user", "content": [text, first]},
        {"role": "user", "content": [second]},
    ]

    mended = repaired([asking, *parted], how)

    assert mended.messages == [
        asking,
        {"role": "user", "content": [first, second, text]},
    ]
    assert kinds(mended) == ["moved", "moved"]


@how
def test_results_of_no_call_and_second_results_are_left_out(how):
    asking, result = chat(["a"])
    orphan = {"role": "tool", "tool_call_id": "z", "content": "?"}

    mended = repaired([orphan, asking, result, dict(result), HI], how)

    assert mended.messages == [asking, result, HI]
    assert [(r.kind, r.position) for r in mended.repairs] == [
        ("orphan", 0),
        ("duplicate", 3),
    ]
    assert mended.repairs[0].message is orphan


def test_ids_that_a_model_uses_every_turn_are_told_apart():
    first, second = chat(["call_0"]), chat(["call_0"])

    mended = repaired([*first, *second[:1]], "interrupted")

    assert mended.messages[:3] == [*first, *second[:1]]
    assert kinds(mended) == ["interrupted"]
