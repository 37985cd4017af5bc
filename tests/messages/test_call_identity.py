"""Which calls mean the same effect."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Unstorable, once, repeatable
from inner.messages import Declaration, canonical, declaration_of, masked

PLAIN = Declaration()


# The numbers of the appendix of RFC 8785, and around the limits of its notation.
@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (1e23, "1e+23"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (0.000001, "0.000001"),
        (1e-7, "1e-7"),
        (333333333.3333332, "333333333.3333332"),
        (-1.5, "-1.5"),
        (10**30, "1" + "0" * 30),
    ],
)
def test_numbers_have_one_text(number, text):
    assert canonical(number) == text


def test_keys_are_sorted_as_javascript_sorts_them():
    value = {"\u20ac": 1, "\r": 2, "1": 3, "\U0001f600": 4, "\ufb33": 5, "\x80": 6}

    assert list(json.loads(canonical(value)).values()) == [2, 3, 6, 1, 4, 5]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values)
def test_the_canonical_text_is_json_of_the_same_value(value):
    assert json.loads(canonical(value)) == value


@given(st.dictionaries(st.text(), values))
def test_the_order_of_arguments_does_not_matter(arguments):
    turned = dict(reversed(arguments.items()))

    assert PLAIN.identity("pay", arguments) == PLAIN.identity("pay", turned)


@pytest.mark.parametrize(
    "generated",
    [
        {"x": "019a86b5-2f40-7008-8000-0004f1bbcd88"},
        {"x": "0xDEADBEEF12345678"},
        {"x": "QWxhZGRpbjpvcGVuIHNlc2FtZTEy"},
        {"x": "2026-11-16T05:41:35.123Z"},
        {"x": "2026-11-16 05:41"},
        {"ref": "a1"},
        {"Reference": "whatever"},
        {"request_id": 7},
        {"requestId": 7},
        {"idempotency-key": "k"},
        {"nonce": "n"},
        {"timestamp": 1794736980},
        {"id": "call-7"},
        {"order": {"items": [{"id": "x1"}]}},
    ],
)
def test_values_that_look_generated_are_masked(generated):
    assert masked(generated) != generated
    assert PLAIN.identity("pay", {"to": "bob", **generated}) == PLAIN.identity(
        "pay", {"to": "bob", **masked(generated)}
    )


@pytest.mark.parametrize(
    "meant",
    [
        {"x": "internationalization"},
        {"x": "4812"},
        {"x": "2026-11-16"},
        {"x": 12345678901234567890},
        {"id": 7},
        {"id": "alice"},
        {"order": "A-17"},
        {"references": ["a1"]},
        {"x": "the quick brown fox jumps over 13 lazy dogs"},
        {"x": "somewhere-over-the-rainbow-way-up-high"},
    ],
)
def test_values_that_somebody_chose_are_not(meant):
    assert masked(meant) == meant


def test_the_name_of_the_tool_belongs_to_it():
    assert PLAIN.identity("pay", {}) != PLAIN.identity("refund", {})


def test_declared_keys_win():
    declared = declaration_of(once(key=["to", "ref"])(lambda to, ref: None))

    one = declared.identity("pay", {"to": "bob", "ref": "a1", "amount": 1})
    assert one == declared.identity("pay", {"to": "bob", "ref": "a1", "amount": 2})
    assert one != declared.identity("pay", {"to": "bob", "ref": "a2", "amount": 1})
    assert one != declared.identity("pay", {"to": "bob"})


def test_a_key_can_be_a_function():
    @once(key=lambda url, **_: url.rstrip("/"))
    def post(url, body): ...

    declared = declaration_of(post)
    assert declared.identity("post", {"url": "a/", "body": 1}) == declared.identity(
        "post", {"url": "a", "body": 2}
    )


@pytest.mark.parametrize(
    "wrong",
    [{"key": "to"}, {"key": ()}, {"key": 7}, {"undo": 7}, {"policy": "perhaps"}],
)
def test_a_wrong_declaration_is_refused(wrong):
    with pytest.raises(Unstorable):
        once(**wrong)(lambda: None)


@pytest.mark.parametrize("declare", [once, repeatable])
def test_what_cannot_be_declared_is_refused(declare):
    with pytest.raises(Unstorable):
        declare(7)
    with pytest.raises(Unstorable):
        declare([].append)
