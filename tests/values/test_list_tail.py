"""A conversation's end is taken off exactly, its counts told without the rest."""

from hashlib import sha256

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import holdfast
from holdfast.backends import Run, run
from holdfast.errors import Corrupt
from holdfast.messages import Message, ToolCall
from holdfast.operations.threads import save
from holdfast.operations.transcripts import Ending, EndingDraft, Untouched
from holdfast.operations.values import Blocks, Tail, codec
from inner.engine import newest
from inner.messages import Tally, stored, without_last
from inner.values import (
    append,
    chain_of,
    last_runs,
    numbers,
    parts_backwards,
    shortened_list,
    splice,
    write,
)

# --- counts ---------------------------------------------------------------------------

IDS = st.sampled_from("abc")
ANTHROPIC = st.lists(
    st.one_of(
        IDS.map(lambda id_: {"type": "tool_use", "id": id_, "name": "t", "input": {}}),
        IDS.map(lambda id_: {"type": "tool_result", "tool_use_id": id_}),
        st.just({"type": "text", "text": "hello"}),
    ),
    max_size=3,
)
MESSAGES = st.one_of(
    st.sampled_from(["user", "assistant", "system", "tool", "other"]).map(
        lambda role: {"role": role, "content": "hello"}
    ),
    IDS.map(lambda id_: {"type": "function_call", "call_id": id_, "name": "t"}),
    IDS.map(lambda id_: {"type": "function_call_output", "call_id": id_}),
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant"]),
        ANTHROPIC,
    ),
    st.just({"type": "reasoning"}),
)


CALLED, ANSWERED = (
    {"type": kind, "call_id": "a", "name": "t"}
    for kind in ("function_call", "function_call_output")
)


# A call with its result, as an importer finds it.
DONE = stored(Message.assistant(tool_calls=[ToolCall(name="t", status="completed")]))


@example([CALLED, CALLED, ANSWERED, ANSWERED])
@example([CALLED, DONE])
@given(st.lists(MESSAGES, min_size=1, max_size=20))
def test_the_counts_without_the_last_message_are_those_of_the_others(messages):
    *others, last = messages

    counted = without_last(Tally().after(messages), last, others[::-1])

    assert counted == Tally().after(others)


# --- the ends of lists ----------------------------------------------------------------

TEXTS = st.text('ab,[]{}"\\1', max_size=100)
ELEMENTS = st.lists(
    st.one_of(
        TEXTS,
        st.integers(0, 9),
        st.dictionaries(st.sampled_from("xy"), st.lists(TEXTS, max_size=3)),
        st.lists(st.integers(0, 9), max_size=80),
    ),
    max_size=12,
)


def grown(batches, edited):
    """A list that was appended to, and then edited somewhere."""
    blocks = Blocks(0)
    elements = [{"first": "x" * 100}]
    spliced = write(codec.encode(elements), blocks)
    for batch in batches:
        if batch:
            addition = codec.encode(batch)[1:-1]
            spliced = append(spliced.rope, spliced.body, addition, blocks)
            elements = [*elements, *batch]
    place = edited % (len(elements) + 1)
    # Between, and as it stands inside of others.
    elements = [*elements[:place], {"x": elements[place:]}, *elements[:place]]
    text = codec.encode(elements)
    return elements, splice(spliced.rope, spliced.body, text, blocks), blocks


@given(st.lists(ELEMENTS, max_size=8), st.integers(0, 30), st.integers(0, 40))
def test_the_last_elements_are_those_of_the_list(batches, edited, count):
    elements, spliced, _ = grown(batches, edited)

    tail = Tail(parts_backwards(spliced.body))

    assert tail.newest(count) == elements[max(0, len(elements) - count) :]
    assert list(tail) == elements[::-1]


@given(st.lists(ELEMENTS, max_size=8), st.integers(0, 30), st.integers(1, 20), ELEMENTS)
def test_a_shortened_list_is_the_beginning_and_what_is_added(
    batches, edited, drop, added
):
    elements, spliced, blocks = grown(batches, edited)
    drop = min(drop, len(elements))
    segments, left = Tail(parts_backwards(spliced.body)).boundary(drop)
    if segments == len(spliced.body.sizes):
        return  # then nothing of it is kept
    text = codec.encode([*left, *added])[1:-1]

    short = shortened_list(spliced.rope, spliced.body, segments, text, blocks)

    expected = codec.encode([*elements[: len(elements) - drop], *added])
    assert short.body.text == expected
    assert short.rope.size == len(expected)
    assert len(numbers(short.rope.runs)) == len(short.body.sizes)
    parts = list(parts_backwards(short.body))[::-1]
    assert short.rope.chain == chain_of(sha256(part).digest() for part in parts)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), max_size=6),
    st.integers(0, 30),
    st.integers(1, 30),
)
def test_the_last_runs_are_those_of_the_last_segments(steps, skip, count):
    runs, place = [], 1
    for gap, length in steps:
        runs.append(Run(place + gap, place + gap + length - 1))
        place += gap + length
    all_numbers = numbers(runs)

    found = numbers(last_runs(runs, skip, count))

    until = max(0, len(all_numbers) - skip)
    assert found == all_numbers[max(0, until - count) : until]


def test_an_end_that_is_no_list_is_damage():
    with pytest.raises(Corrupt):
        Tail([b'"never closed']).newest(1)


# --- in a store -----------------------------------------------------------------------


def ending(store, thread, **what):
    draft = EndingDraft((), lambda tail, before: Ending(**what))
    how = save.Options()
    return run(save.save(store.runner.context, thread, draft, how))


STEPS = st.lists(
    st.tuples(st.integers(0, 6), st.lists(MESSAGES, max_size=4)), max_size=12
)


@given(STEPS)
def test_any_ends_leave_the_messages_and_counts_they_should(steps):
    with holdfast.open(":memory:") as store:
        store.conversations.create("c")
        expected = []
        for drop, added in steps:
            dropped = min(drop, len(expected))
            long = [message | {"pad": "x" * 60} for message in added]
            ending(store, "conversation:c", drop=dropped, added=long)
            expected = [*expected[: len(expected) - dropped], *long]

            found = store.conversations.load("c").messages
            assert found == expected
            [summary] = store.conversations.list()
            counted = Tally().after(expected)
            assert summary.messages == counted.messages
            assert summary.exchanges == counted.exchanges
            assert summary.open_calls == counted.open
        assert store.verify().problems == ()


def test_a_list_of_many_ends_is_written_anew_before_it_is_scattered(memory):
    memory.conversations.create("c")
    message = {"role": "user", "content": "x" * 300}
    for _ in range(200):
        memory.conversations.add("c", message, message)
        ending(memory, "conversation:c", drop=1)

    head = memory.conversations.thread("c").head

    assert len(memory.conversations.load("c").messages) == 200
    assert len(head.runs) <= 65
    assert memory.verify().problems == ()


def test_there_is_no_end_of_a_conversation_that_is_not_there(memory):
    with pytest.raises(Untouched):
        ending(memory, "conversation:c", drop=1)
    assert run(newest(memory.runner.context, "conversation:c", 5)).messages == []


def test_an_end_that_is_saved_twice_with_one_id_is_made_once(memory):
    memory.conversations.create("c", messages=[{"role": "user", "content": "x" * 300}])
    how = save.Options(id="same")

    def drop():
        draft = EndingDraft((), lambda tail, before: Ending(drop=1, added=[{"a": 1}]))
        return run(save.save(memory.runner.context, "conversation:c", draft, how))

    assert drop() == drop()
    assert memory.conversations.load("c").messages == [{"a": 1}]


def test_the_stored_text_is_what_it_would_be_if_written_at_once(memory):
    memory.conversations.create(
        "c", messages=[{"n": n, "x": "y" * 90} for n in range(9)]
    )
    ending(memory, "conversation:c", drop=4, added=[{"new": True}])

    kept = memory.conversations.thread("c").load()["messages"]

    assert orjson.dumps(kept) == orjson.dumps(
        [*({"n": n, "x": "y" * 90} for n in range(5)), {"new": True}]
    )
