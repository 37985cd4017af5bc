"""Typed objects are stored as mappings, and come back equal or are refused."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import nan
from threading import Lock
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.dataclasses import dataclass as checked_dataclass

from holdfast.errors import FormatMismatch, Unstorable
from inner.values import convert, decode, encode, flattened


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    colour: Colour


@dataclass
class Step:
    name: str
    due: datetime | None = None
    colour: Colour = Colour.RED


@dataclass(frozen=True, slots=True)
class Plan:
    steps: list[Step]
    first: Step | None = None
    tags: frozenset[str] = frozenset()
    colours: set[Colour] = field(default_factory=set)
    by_level: dict[Level, Step] = field(default_factory=dict)
    span: tuple[int, ...] = ()
    at: Point | None = None
    cost: Decimal = Decimal(0)
    blob: bytes = b""
    key: UUID | None = None
    price: float = 0.0
    took: timedelta = timedelta()
    anything: Any = None
    secret: str = field(default="", repr=False, compare=False)
    counted: int = field(default=0, init=False)


class Tagged(msgspec.Struct, tag="tagged", tag_field="kind", rename="camel"):
    long_name: str
    left_out: int | msgspec.UnsetType = msgspec.UNSET
    steps: list[Step] = []


class Other(msgspec.Struct, tag="other", tag_field="kind"):
    number: int


class Either(msgspec.Struct):
    one: Tagged | Other | None = None


class Pair(msgspec.Struct, array_like=True, tag="pair"):
    left: int
    right: datetime


class Inner(pydantic.BaseModel):
    name: str = pydantic.Field(alias="innerName")
    hidden: int = pydantic.Field(default=0, exclude=True)
    _seen: dict[str, int] = pydantic.PrivateAttr(default_factory=dict)


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", validate_by_name=True)

    inner: Inner | None = None
    inners: list[Inner] = []
    at: datetime | None = None
    colour: Colour | None = None
    kind: Literal["a", "b"] = "a"
    step: Step | None = None
    cost: Decimal = Decimal(0)

    @pydantic.field_serializer("cost")
    def rounded(self, cost: Decimal) -> int:
        return int(cost)

    @pydantic.computed_field
    def double(self) -> Decimal:
        return self.cost * 2


class Root(pydantic.RootModel[list[Inner]]):
    pass


@checked_dataclass
class Checked:
    due: date
    inner: Inner | None = None


@dataclass
class Cached:
    number: int

    @functools.cached_property
    def double(self) -> int:
        return self.number * 2


EXTRA: dict[str, Any] = {"added": [1, (2,)]}
NOW = datetime(2024, 1, 2, 3, tzinfo=UTC)
INNER = Inner(innerName="x", hidden=7)
STEP = Step("read", NOW, Colour.BLUE)
PLAN = Plan(
    [STEP, Step("write")],
    first=STEP,
    tags=frozenset("a"),
    colours={Colour.RED},
    by_level={Level.HIGH: STEP},
    span=(1, 2),
    at=Point(3, Colour.BLUE),
    cost=Decimal("1.10"),
    blob=b"\0",
    key=UUID(int=7),
    took=timedelta(1),
    anything={"a": (1, {2})},
    secret="kept",
)
KEPT: dict[str, object] = {
    "dataclass": STEP,
    "nested": PLAN,
    "struct": Tagged("x", steps=[STEP]),
    "union": Either(Other(1)),
    "other union": Either(Tagged("x", 5)),
    "list struct": Pair(1, NOW),
    "model": Model(
        inner=INNER, inners=[INNER], at=NOW, colour=Colour.RED, step=STEP,
        cost=Decimal("1.5"), **EXTRA,
    ),
    "aliased": INNER,
    "root": Root([INNER]),
    "checked": Checked(date.min, INNER),
    "cached": Cached(2),
    "nan": Plan([], anything=nan),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_a_typed_object_is_stored_plainly_and_comes_back(name: str) -> None:
    value: Any = KEPT[name]

    for stored in (encode(value), encode(flattened(value))):
        found = decode(stored)
        back = convert(found, type(value))
        assert type(found) in (dict, list)
        assert type(back) is type(value)
        assert repr(back) == repr(value)
    assert encode(convert(found, type(value))) == encode(value)


@pytest.mark.parametrize("name", KEPT)
def test_typed_objects_are_stored_inside_plain_values(name: str) -> None:
    value: Any = KEPT[name]
    plain = decode(encode(value))

    assert repr(decode(encode({"a": [value, (value,)]}))) == repr(
        {"a": [plain, (plain,)]}
    )


def test_the_stored_form_has_every_field_by_its_name() -> None:
    assert decode(encode(STEP)) == {"name": "read", "due": NOW, "colour": "blue"}
    assert decode(encode(INNER)) == {"name": "x", "hidden": 7}
    assert decode(encode(Tagged("x"))) == {
        "kind": "tagged", "longName": "x", "steps": [],
    }  # fmt: skip
    stored = decode(encode(Model(cost=Decimal("1.5"))))
    assert isinstance(stored, dict)
    assert stored["cost"] == Decimal("1.5")
    assert "double" not in stored


def test_a_field_that_does_not_count_for_equality_is_kept() -> None:
    back = convert(decode(encode(PLAN)), Plan)

    assert back.secret == "kept"


def test_a_whole_number_comes_back_as_the_float_that_was_declared() -> None:
    back = convert(decode(encode(Plan([], price=2))), Plan)

    assert (type(back.price), back.price) == (float, 2)
    with pytest.raises(Unstorable):
        encode(Plan([], price=2**53 + 1))


def test_a_model_that_was_dumped_by_alias_is_loaded_too() -> None:
    assert convert({"innerName": "x"}, Inner) == Inner(innerName="x")


@dataclass
class Animal:
    name: str


@dataclass
class Dog(Animal):
    pass


@dataclass
class Owner:
    animal: Animal


@dataclass(frozen=True)
class Cell:
    n: int


@dataclass
class Loose:
    value: object = None
    number: int = 0
    callback: Callable[[], None] | None = None


@dataclass
class Growing:
    n: int

    def __post_init__(self) -> None:
        self.n += 1


@dataclass
class Started:
    n: InitVar[int]


class Locked(pydantic.BaseModel):
    _lock: Any = pydantic.PrivateAttr(default_factory=Lock)


class Swapped(pydantic.BaseModel):
    a: int = pydantic.Field(alias="b")
    b: int = pydantic.Field(alias="a")


@dataclass
class Unresolved:
    other: Missing  # type: ignore[name-defined]  # noqa: F821


SEEN = Inner(innerName="x")
SEEN._seen["a"] = 1
LOST: dict[str, tuple[object, str]] = {
    "subclass": (Owner(Dog("rex")), "state.animal is Dog and would be Animal"),
    "undeclared": (Loose(STEP), "state.value is Step and would be dict"),
    "undeclared enum": (Loose(Colour.RED), "state.value is Colour and would be str"),
    "undeclared key": (Loose({Level.LOW: 1}), "state.value.keys()[0] is Level and"),
    "undeclared member": (Loose({Level.LOW}), "state.value is {<Level.LOW: 1>}"),
    "undeclared part": (Loose([0, (Level.LOW,)]), "state.value[1][0] is Level and"),
    "wrong type": (Loose(number="1"), "Expected `int`, got `str`"),
    "list for a tuple": (Plan([], span=[1]), "state.span is list"),
    "changed by itself": (Growing(1), "state.n is 2 and would be 3"),
    "init only": (Started(1), "InitVar"),
    "private": (SEEN, "state has private attributes"),
    "lock": (Locked(), "state has private attributes"),
    "swapped": (Swapped(a=1, b=2), "state.a is 2 and would be 1"),
    "invalid": (Model.model_construct(kind="c"), "1 validation error"),
    "unresolved": (Unresolved(1), "'Missing' is not defined"),
}


@pytest.mark.parametrize("name", LOST)
def test_what_would_come_back_changed_is_refused(name: str) -> None:
    value, reason = LOST[name]

    for refused in (encode, flattened):
        with pytest.raises(Unstorable) as refusal:
            refused(value)
        assert refusal.value.path == "state"
        assert reason in refusal.value.reason


def test_a_part_that_is_not_storable_is_named_by_its_path() -> None:
    with pytest.raises(Unstorable, match=r"^state\.a\[0\]\.callback: builtin"):
        encode({"a": [Loose(callback=breakpoint)]})


def test_a_typed_object_is_no_key_and_no_member_of_a_set() -> None:
    for value, path in (
        ({Cell(1): 1}, r"state\.keys\(\)\[0\]"),
        ({(1, Cell(1)): 1}, r"state\.keys\(\)\[0\]\[1\]"),
        ({Cell(1)}, r"state\[0\]"),
        (Loose({Cell(1)}), r"state\.value\[0\]"),
        (Loose({Cell(1): 1}), r"state\.value\.keys\(\)\[0\]"),
    ):
        with pytest.raises(Unstorable, match=rf"^{path}: Cell cannot be a key"):
            encode(value)


def test_an_enum_outside_of_a_typed_object_is_refused() -> None:
    with pytest.raises(Unstorable, match=r"^state\.a: Colour .* pass its \.value"):
        encode({"a": Colour.RED, "b": STEP})


def test_a_typed_object_inside_itself_is_refused() -> None:
    loop = Loose()
    loop.value = [loop]

    for refused in (encode, flattened):
        with pytest.raises(Unstorable, match="levels deep, or inside itself"):
            refused(loop)


def test_a_type_whose_annotation_is_unknown_does_not_fit() -> None:
    with pytest.raises(FormatMismatch, match="does not fit Unresolved"):
        convert({"other": 1}, Unresolved)


scalars = st.none() | st.booleans() | st.integers() | st.text() | st.binary()
steps = st.builds(
    Step,
    st.text(),
    st.none() | st.datetimes(timezones=st.just(UTC)),
    st.sampled_from(Colour),
)
plans = st.builds(
    Plan,
    st.lists(steps, max_size=3),
    st.none() | steps,
    st.frozensets(st.text(), max_size=3),
    st.sets(st.sampled_from(Colour)),
    st.dictionaries(st.sampled_from(Level), steps),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(tuple),
    st.builds(Point, st.integers(-(2**63), 2**63 - 1), st.sampled_from(Colour)),
    st.decimals(allow_nan=False),
    st.binary(max_size=9),
    st.uuids(),
    st.floats(allow_nan=False),
    st.timedeltas(),
    st.recursive(scalars, lambda parts: st.lists(parts) | st.tuples(parts)),
)


@given(plans)
def test_any_plan_comes_back_equal(plan: Plan) -> None:
    assert convert(decode(encode(plan)), Plan) == plan
