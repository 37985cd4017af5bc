"""What adapters are made of: names of any text, and the store that they use."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.operations.names import escaped
from holdfast.operations.stores import UsedStore

TEXTS = st.text(st.characters(exclude_categories=()), max_size=200)


@given(TEXTS, TEXTS)
def test_no_two_texts_have_the_same_name_and_none_has_a_separator(one, other):
    names = escaped(one), escaped(other)

    assert (names[0] == names[1]) == (one == other)
    assert all(len(name.encode()) <= 150 for name in names)
    assert not {*"/:\0\x1f"} & {*names[0]}


@pytest.mark.parametrize("text", ["a", "ü-1_x.y@z", "%2F", "x" * 120])
def test_a_plain_name_stays_readable(text):
    assert escaped(text) == text.replace("%", "%25")


def test_the_scope_of_a_store_is_used_whether_it_is_given_or_opened(tmp_path):
    async def save(used):
        await used.awaited.thread("t").append(l=[1])
        await used.close()

    path = tmp_path / "agents.db"
    asyncio.run(save(UsedStore(path, scope="acme")))
    with holdfast.open(path) as store:
        asyncio.run(save(UsedStore(store, scope="acme")))
        asyncio.run(save(UsedStore(store)))

        assert store.scope("acme").thread("t").load() == {"l": [1, 1]}
        assert store.thread("t").load() == {"l": [1]}


def test_options_that_come_too_late_for_a_store_are_refused():
    with holdfast.open(":memory:") as store:
        with pytest.raises(holdfast.Unstorable, match=r"key: .* pass it to holdfast"):
            UsedStore(store, key="secret")
        with pytest.raises(holdfast.Unstorable, match="give the address"):
            UsedStore(store, compress=True, scope="acme")
