"""The size of a checkpoint after any saves and appends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import holdfast
from conformance.values import size_of

texts = st.text(max_size=8) | st.integers(1, 4000).map(lambda n: "é" * n)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | texts,
    lambda parts: (
        st.lists(parts, max_size=4)
        | st.tuples(parts)
        | st.dictionaries(st.text(max_size=3), parts, max_size=3)
        | st.dictionaries(st.integers(), parts, max_size=2)
    ),
    max_leaves=8,
)
states = st.dictionaries(st.sampled_from("abc"), values) | values
lists = st.dictionaries(st.sampled_from("xyz"), st.lists(values, max_size=5))


@given(st.lists(st.tuples(states, st.lists(lists, max_size=4)), max_size=4))
def test_the_size_is_that_of_the_loaded_values(steps):
    with holdfast.open(":memory:") as store:
        thread = store.thread("t")
        for state, additions in steps:
            assert thread.save(state).size == size_of(thread.load())
            thread.save({})
            for added in additions:
                assert thread.extend(added).size == size_of(thread.load())


def test_a_thread_that_only_has_a_journal_is_the_lightest(memory):
    memory.thread("called").record("call", {"refunded": 129})
    memory.thread("chat").save({"text": "x" * 999})

    heavy = {one.threads[0]: one.values for one in memory.heaviest()}

    assert heavy["chat"].keys() == {"text"}
    assert heavy.get("called", {}) == {}
