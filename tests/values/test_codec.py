"""What the codec promises: exactly the same value back, or a refusal with its place."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from math import copysign, inf, isnan, nan
from typing import Any, NamedTuple, NotRequired, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import orjson
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.errors import Corrupt, FormatMismatch, Unstorable
from inner.values import LOADS, MARKER, convert, decode, encode

TAGS = [*LOADS[str], *LOADS[list], "$hf.unknown"]
RESERVED_KEYS = [*TAGS, "$hf.", "$hf", "lc", "__type__", "$ref", "$type", "py/object"]


def fingerprint(value: object) -> object:
    """The value with every type written beside it; equal only for exact equals."""
    kind = type(value)
    return (kind.__name__, FINGERPRINTS.get(kind, repr)(value))


def moment_fingerprint(value: datetime | time) -> object:
    return (value.isoformat(), value.fold, repr(type(value.tzinfo)), value.tzname())


FINGERPRINTS: dict[type, Callable[[Any], object]] = {
    list: lambda value: [fingerprint(item) for item in value],
    tuple: lambda value: [fingerprint(item) for item in value],
    set: lambda value: sorted(map(fingerprint, value), key=repr),
    frozenset: lambda value: sorted(map(fingerprint, value), key=repr),
    dict: lambda value: [
        [fingerprint(part) for part in pair] for pair in value.items()
    ],
    datetime: moment_fingerprint,
    time: moment_fingerprint,
    int: hex,
}


def assert_kept(value: object) -> None:
    assert fingerprint(decode(encode(value))) == fingerprint(value)


any_text = st.text(st.characters(), max_size=8)
whole_second_zones = st.builds(
    lambda seconds, name: timezone(timedelta(seconds=seconds), *name),
    st.integers(-86_399, 86_399),
    st.just(()) | st.tuples(any_text),
)
zones = st.none() | st.just(UTC) | whole_second_zones
folds = st.sampled_from([0, 1])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**80), 2**80),
    st.sampled_from([2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**700]),
    st.floats(),
    any_text,
    st.sampled_from(RESERVED_KEYS),
    st.binary(max_size=8),
    st.datetimes(timezones=zones).flatmap(
        lambda moment: folds.map(lambda fold: moment.replace(fold=fold))
    ),
    st.dates(),
    st.times(timezones=zones).flatmap(
        lambda moment: folds.map(lambda fold: moment.replace(fold=fold))
    ),
    st.timedeltas(),
    st.decimals(),
    st.sampled_from(["sNaN", "-sNaN12", "NaN7", "-0E+5", "1E-999999"]).map(Decimal),
    st.uuids(),
)
# A signalling NaN cannot be hashed, so Python itself keeps it out of keys and sets.
hashable_scalars = scalars.filter(
    lambda value: not (isinstance(value, Decimal) and value.is_snan())
)
keys = st.recursive(
    hashable_scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3)
    ),
    max_leaves=4,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(any_text | st.sampled_from(RESERVED_KEYS), inner, max_size=4),
        st.dictionaries(keys, inner, max_size=3),
        st.sets(keys, max_size=3),
        st.frozensets(keys, max_size=3),
    ),
    max_leaves=12,
)


@given(values)
@example({tag: {tag: [tag]} for tag in RESERVED_KEYS})
@example([{tag: []} for tag in RESERVED_KEYS])
@example([{tag: "text"} for tag in RESERVED_KEYS])
@example([{tag: None, "more": 1} for tag in RESERVED_KEYS])
@example({"first": 1, "$hf.tuple": [1]})
@example({1: "a", "1": "b", None: "c", 2.0: "d", (1, (2,)): {"e"}})
@example([datetime(2024, 1, 1, tzinfo=UTC), {"$hf.datetime": "x"}])
def test_any_storable_value_comes_back_with_exactly_equal_types(value: object) -> None:
    assert_kept(value)


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=8),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text().map("key {}".format), inner, max_size=4),
    ),
)


@given(plain_values)
def test_plain_values_are_stored_as_the_plain_json_of_orjson(value: object) -> None:
    assert encode(value) == orjson.dumps(value)


@pytest.mark.parametrize(
    "value",
    [-0.0, 0.0, 1e16, 5e-324, 1.7976931348623157e308, 2**64 - 1, -(2**63), "", [], {}],
)
def test_numbers_at_the_edges_of_json_are_kept(value: object) -> None:
    assert_kept([value])


def test_the_sign_of_zero_is_kept_on_both_paths() -> None:
    fast, slow = decode(encode([-0.0])), decode(encode((-0.0,)))

    assert isinstance(fast, list)
    assert isinstance(slow, tuple)
    assert copysign(1, fast[0]) == copysign(1, slow[0]) == -1


def test_floats_that_json_has_no_word_for_are_kept() -> None:
    value = decode(encode([nan, inf, -inf]))

    assert isinstance(value, list)
    assert isnan(value[0])
    assert value[1:] == [inf, -inf]


def test_two_nan_keys_stay_two() -> None:
    value = {float("nan"): 1, float("nan"): 2}

    assert_kept(value)


def test_an_integer_beyond_pythons_digit_limit_is_kept() -> None:
    assert_kept([10**5000, -(10**5000)])


def test_an_integer_is_kept_under_the_lowest_digit_limit() -> None:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert_kept([2**2048, 2**2048 - 1, -(2**2048)])
    finally:
        sys.set_int_max_str_digits(limit)


def test_the_name_of_a_fixed_zone_and_the_fold_are_kept() -> None:
    zone = timezone(timedelta(hours=1), "CET")
    value = decode(encode(datetime(2024, 10, 27, 2, 30, tzinfo=zone, fold=1)))

    assert isinstance(value, datetime)
    assert (value.tzname(), value.fold) == ("CET", 1)


def test_a_local_time_made_with_astimezone_is_kept() -> None:
    assert_kept(datetime(2024, 1, 1).astimezone())


@pytest.mark.parametrize("empty", [(), set(), frozenset(), {}, [], b"", ""])
def test_empty_containers_keep_their_type(empty: object) -> None:
    assert_kept({"value": empty, "nested": [empty]})


def test_equal_sets_give_equal_text() -> None:
    members = [f"tag-{n}" for n in range(50)]
    nested = [frozenset({(member, 1), member}) for member in members]

    assert encode({*members}) == encode({*members[::-1]})
    assert encode({*nested}) == encode({*nested[::-1]})


def test_a_set_is_written_the_same_with_or_without_a_tuple_beside_it() -> None:
    tags = {"a", "a b", "a!", 'a"', 3, 20}

    assert encode([tags, ()]) == encode([tags])[:-1] + b',{"$hf.tuple":[]}]'


def test_text_that_looks_like_a_tag_inside_a_string_costs_and_changes_nothing() -> None:
    value = {"text": '{"$hf.tuple":[1]}', "$hf.b": 1}

    assert encode(value) == orjson.dumps(value)
    assert_kept(value)


def test_every_tagged_text_opens_with_the_marker() -> None:
    for value in [(), {1}, nan, 2**70, "\ud800", b"x", UUID(int=1), {1: 2}]:
        assert encode(value).startswith(MARKER)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_decoded(kind: Callable[[bytes], bytes]) -> None:
    assert decode(kind(encode({"a": (1, b"2")}))) == {"a": (1, b"2")}
    assert decode(kind(b'{"a":1}')) == {"a": 1}


def nested(depth: int, wrap: Callable[[object], object]) -> object:
    value: object = wrap(0)
    for _ in range(depth - 1):
        value = wrap(value)
    return value


WRAPS: dict[str, tuple[int, Callable[[object], object]]] = {
    "list": (200, lambda value: [value]),
    "dict": (200, lambda value: {"k": value}),
    "tuple": (100, lambda value: (value,)),
    "frozenset": (100, lambda value: frozenset([value])),
    "pairs": (67, lambda value: {1: value}),
}


@pytest.mark.parametrize("name", WRAPS)
def test_nesting_is_kept_up_to_the_limit_and_refused_beyond(name: str) -> None:
    limit, wrap = WRAPS[name]

    assert_kept(nested(limit, wrap))
    with pytest.raises(Unstorable, match="more than 200 levels deep"):
        encode(nested(limit + 1, wrap))


def test_the_limit_is_the_same_whether_or_not_tags_are_needed() -> None:
    assert_kept([nested(199, lambda value: [value]), ()])
    with pytest.raises(Unstorable):
        encode([nested(200, lambda value: [value]), ()])


def cyclic_list() -> list[object]:
    value: list[object] = [1]
    value += [value, value]
    return value


def cyclic_dict() -> dict[str, object]:
    value: dict[str, object] = {"t": (1,)}
    value.update(a=value, b=[value, value])
    return value


@pytest.mark.parametrize("make", [cyclic_list, cyclic_dict])
def test_a_value_that_contains_itself_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(Unstorable, match="inside itself"):
        encode(make())


def test_a_value_that_occurs_twice_is_kept() -> None:
    shared = {"a": [1, (2,)]}

    assert_kept([shared, {"again": shared}])


def test_a_caller_with_little_stack_left_gets_a_refusal() -> None:
    deep = nested(150, lambda value: [value])

    def descend(levels: int) -> bytes:
        return descend(levels - 1) if levels else encode([deep, ()], "state.tree")

    with pytest.raises(Unstorable, match=r"^state\.tree: "):
        descend(sys.getrecursionlimit() - 200)


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int


@dataclass
class Note:
    text: str


class Struct(msgspec.Struct):
    text: str


class Model(pydantic.BaseModel):
    text: str


class LaterMoment(datetime):
    pass


class Opaque:
    pass


def callback() -> None:
    """A function that a caller has left in a state."""


REFUSED: dict[str, tuple[object, str]] = {
    "function": (callback, "function is not storable; keep its name and look it up"),
    "class": (Opaque, "type is not storable; keep its name"),
    "object": (Opaque(), "Opaque is not storable; pass plain data"),
    "enum": (Colour.RED, "Colour is not storable; pass its .value"),
    "int enum": (Level.LOW, "Level is not storable; pass its .value"),
    "named tuple": (Point(1), "Point is not storable; pass tuple(...) and load with"),
    "ordered dict": (
        OrderedDict(a=1),
        "OrderedDict is not storable; pass a plain dict",
    ),
    "str subclass": (Text("a"), "Text is not storable; pass a plain str"),
    "int subclass": (Number(1), "Number is not storable; pass a plain int"),
    "datetime subclass": (
        LaterMoment(2024, 1, 1),
        "LaterMoment is not storable; pass a plain datetime",
    ),
    "bytearray": (bytearray(b"a"), "bytearray is not storable; pass bytes(...)"),
    "memoryview": (memoryview(b"a"), "memoryview is not storable; pass bytes(...)"),
    "complex": (1j, "complex is not storable; pass [z.real, z.imag]"),
    "range": (range(3), "range is not storable; pass plain data"),
    "zone": (
        datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        "datetime with the time zone zoneinfo.ZoneInfo(key='Europe/Berlin') is not st",
    ),
    "odd offset": (
        time(1, tzinfo=timezone(timedelta(microseconds=-1))),
        "time with the time zone datetime.timezone(datetime.timedelta(days=-1,",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_come_back_changed_is_refused_with_the_next_step(name: str) -> None:
    value, reason = REFUSED[name]

    for surroundings in ({"callback": value}, {"callback": value, "pair": (1, 2)}):
        with pytest.raises(Unstorable) as refusal:
            encode({"messages": [0, 1, 2, surroundings]})
        assert refusal.value.path == "state.messages[3].callback"
        assert refusal.value.reason.startswith(reason)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (1j, "state"),
        ([1j], "state[0]"),
        ({"a b": 1j}, 'state["a b"]'),
        ({'say "x"': {"": 1j}}, 'state["say \\"x\\""][""]'),
        ({"a": [(0, {"b": 1j})]}, "state.a[0][1].b"),
        ({"tags": {1j}}, "state.tags[0]"),
        ({1: {None: 1j}}, "state[1][None]"),
        ({(1, 2): 1j}, "state[(1, 2)]"),
        ({"a": 0, Colour.RED: 1}, "state.keys()[1]"),
        ({(1, 1j): 1}, "state.keys()[0][1]"),
        ({Text("a"): 1}, "state.keys()[0]"),
        ({"$hf.x": 1j}, 'state["$hf.x"]'),
        ({"\ud800": 1j}, 'state["\\ud800"]'),
        ([nan, {"first": 1j, "second": 2j}], "state[1].first"),
    ],
)
def test_a_refusal_names_the_path_of_the_first_offender(
    value: object, path: str
) -> None:
    with pytest.raises(Unstorable) as refusal:
        encode(value)

    assert refusal.value.path == path


def test_a_refused_time_zone_names_the_way_out() -> None:
    moment = datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))

    with pytest.raises(Unstorable, match=r"as \.astimezone\(timezone\.utc\) does"):
        encode(moment)

    assert_kept(moment.astimezone(UTC))


def test_the_path_begins_with_the_name_the_caller_gave() -> None:
    with pytest.raises(Unstorable, match=r"^plan\.steps\[0\]: complex is not storable"):
        encode({"steps": [1j]}, "plan")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"a":',
        b"[1,2",
        b"nul",
        b"[1] trailing",
        b"\xff\xfe",
        b"NaN",
        b'{"$hf.tuple":[1,2]',
        b'{"$hf.pickle":"gASV"}',
        b'{"$hf.":1}',
        b'[{"$hf.object":["os","system"]}]',
        b'{"$hf.tuple":[1],"more":2}',
        b'{"$hf.tuple":"ab"}',
        b'{"$hf.tuple":{"$hf.set":[]}}',
        b'{"$hf.set":[[]]}',
        b'{"$hf.frozenset":[{}]}',
        b'{"$hf.dict":["ab"]}',
        b'{"$hf.dict":[[1]]}',
        b'{"$hf.dict":[[[],1]]}',
        b'{"$hf.int":5}',
        b'{"$hf.int":"five"}',
        b'{"$hf.int":"' + b"9" * 5000 + b'"}',
        b'{"$hf.float":"1.5"}',
        b'{"$hf.str":"/w=="}',
        b'{"$hf.bytes":"!"}',
        b'{"$hf.bytes":"YQ"}',
        b'{"$hf.datetime":"yesterday"}',
        b'{"$hf.datetime":["2024-01-01T00:00:00",2,null]}',
        b'{"$hf.datetime":["2024-01-01T00:00:00",0,"CET"]}',
        b'{"$hf.datetime":[1,0,null]}',
        b'{"$hf.date":"2024-13-01"}',
        b'{"$hf.time":"25:00"}',
        b'{"$hf.timedelta":[1,2]}',
        b'{"$hf.timedelta":[1.5,0,0]}',
        b'{"$hf.timedelta":[9999999999,0,0]}',
        b'{"$hf.decimal":"one"}',
        b'{"$hf.decimal":"1E+9999999999999999999"}',
        b'{"$hf.uuid":"1234"}',
        b'{"$hf.uuid":null}',
        b'{"$hf.tuple":' * 1000 + b"[]" + b"}" * 1000,
    ],
)
def test_damaged_text_is_reported_as_corrupt(text: bytes) -> None:
    with pytest.raises(Corrupt):
        decode(text)


def decode_or_report(text: bytes) -> None:
    try:
        decode(text)
    except Corrupt:
        return


@given(st.binary(max_size=64) | st.binary(max_size=32).map(MARKER.__add__))
def test_random_bytes_give_a_value_or_corrupt_and_nothing_else(text: bytes) -> None:
    decode_or_report(text)


@given(values, st.data())
def test_damaged_encodings_give_a_value_or_corrupt_and_nothing_else(
    value: object, data: st.DataObject
) -> None:
    text = encode([value, ()])
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 8)))
    patch = data.draw(st.binary(max_size=4) | st.sampled_from([b'"', b"[]", b"null"]))

    decode_or_report(text[:start] + patch + text[end:])


payloads = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(TAGS) | st.text(), inner, max_size=2),
    ),
)


@given(st.sampled_from(TAGS), payloads)
def test_any_payload_under_any_tag_gives_a_value_or_corrupt(
    tag: str, payload: object
) -> None:
    decode_or_report(msgspec.json.encode({tag: payload}))


@dataclass
class Run:
    started: datetime
    key: UUID
    cost: Decimal
    blob: bytes
    tags: set[str]
    span: tuple[int, int]


RUN = Run(
    started=datetime(2024, 1, 1, tzinfo=UTC),
    key=UUID(int=7),
    cost=Decimal("1.10"),
    blob=b"\0",
    tags={"a"},
    span=(1, 2),
)


class Draft(TypedDict):
    text: str
    due: NotRequired[date]


class Wrapper(msgspec.Struct):
    models: list[Model]


def test_a_stored_dataclass_dict_loads_as_the_dataclass() -> None:
    assert convert(decode(encode(vars(RUN))), Run) == RUN


def test_json_text_forms_load_as_the_dataclass_too() -> None:
    assert convert(decode(encode(msgspec.to_builtins(RUN))), Run) == RUN


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        ({"text": "a", "due": date.min}, Draft, {"text": "a", "due": date.min}),
        ({"text": "a"}, Struct, Struct("a")),
        ({"text": "a"}, Model, Model(text="a")),
        ([{"text": "a"}], list[Model], [Model(text="a")]),
        ({"models": [{"text": "a"}]}, Wrapper, Wrapper([Model(text="a")])),
        ([1], Point, Point(1)),
        ("red", Colour, Colour.RED),
        ({(1, 2): "a"}, dict[tuple[int, int], str], {(1, 2): "a"}),
        ({"a": (1, b"x")}, dict[str, object], {"a": (1, b"x")}),
    ],
)
def test_values_load_as_declared_types(
    value: object, type_: type[object], expected: object
) -> None:
    assert fingerprint(convert(value, type_)) == fingerprint(expected)


@pytest.mark.parametrize(
    ("value", "type_", "name"),
    [
        ({"text": 1}, Note, "Note"),
        ({}, Struct, "Struct"),
        ({}, Draft, "Draft"),
        ({"text": []}, Model, "Model"),
        ([{"text": []}], list[Model], "list"),
        ({"a": 1}, Opaque, "Opaque"),
        ("1", int, "int"),
        ({}, int | Note | Struct, "Union|int"),
    ],
)
def test_a_value_that_does_not_fit_is_a_format_mismatch(
    value: object, type_: type[object], name: str
) -> None:
    with pytest.raises(FormatMismatch, match=f"does not fit .*({name})") as mismatch:
        convert(value, type_)

    assert mismatch.value.__cause__ is not None
