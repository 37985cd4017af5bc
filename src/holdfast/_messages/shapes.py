"""The fields that a provider requires of a message or a part, with their types.

A message that fits is passed to the provider unchanged. No library of a provider is
needed.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
import orjson

from holdfast._messages.loose import fields_of, kind_of, parts_of
from holdfast.errors import Unstorable

Fields: TypeAlias = Mapping[str, object]
Test: TypeAlias = Callable[[object], bool]

_OPTIONS = orjson.OPT_NON_STR_KEYS


class Shape(msgspec.Struct, frozen=True):
    """The fields of a mapping, each with a test of its value.

    Other fields may be there too, unless the shape is ``closed``.
    """

    required: Mapping[str, Test]
    optional: Mapping[str, Test] = {}
    closed: bool = False

    def fit(self, value: object) -> Fields | None:
        """The mapping without optional fields of a wrong type, ``None`` if it is wrong.

        Dumps of a provider's objects have ``None`` in fields that must not be there. A
        closed shape leaves out only such empty fields.
        """
        fields = fields_of(value)
        if not all(
            n in fields and test(fields[n]) for n, test in self.required.items()
        ):
            return None
        wrong = {
            n
            for n, test in self.optional.items()
            if n in fields and not test(fields[n])
        }
        if self.closed and self._loses(fields, wrong):
            return None
        return {n: fields[n] for n in fields if n not in wrong} if wrong else fields

    def _loses(self, fields: Fields, wrong: set[str]) -> bool:
        known = self.required.keys() | self.optional.keys()
        return bool(fields.keys() - known) or any(fields[name] for name in wrong)


Shapes: TypeAlias = Mapping[str, Shape]


def fit_part(shapes: Shapes, value: object) -> Fields | None:
    """A part that a provider accepts as it is, ``None`` if it does not."""
    shape = shapes.get(kind_of(fields_of(value)))
    return shape.fit(value) if shape else None


# --- tests ----------------------------------------------------------------------------


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_none(value: object) -> bool:
    return value is None


def is_anything(_value: object) -> bool:
    return True


def is_bool(value: object) -> bool:
    return isinstance(value, bool)


def is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def is_fields(value: object) -> bool:
    """True if a value is a JSON object."""
    fields = fields_of(value)
    return fields is value and all(map(is_text, fields))


def one_of(*values: str) -> Test:
    """A test for one of a few texts."""
    return lambda value: isinstance(value, str) and value in values


def either(*tests: Test) -> Test:
    """A test that passes if one of the tests passes."""
    return lambda value: any(test(value) for test in tests)


def every(test: Test) -> Test:
    """A test for a list whose elements all pass the test."""
    return lambda value: is_list(value) and all(map(test, parts_of(value)))


def each(test: Test) -> Test:
    """A test for a list of one or more elements that pass the test."""
    return lambda value: bool(parts_of(value)) and every(test)(value)


def shaped(shape: Shape) -> Test:
    """A test for a value that fits without leaving anything out."""
    return lambda value: value is not None and shape.fit(value) is value


def typed(shapes: Shapes) -> Test:
    """A test for a value that has a type among these and fits."""
    return lambda value: value is not None and fit_part(shapes, value) is value


# --- JSON -----------------------------------------------------------------------------


def to_json(value: object) -> Any:
    """A copy that is JSON only; bytes become base64, other types their text."""
    try:
        return orjson.loads(orjson.dumps(value, _json_of, _OPTIONS))
    except (TypeError, ValueError):
        return _to_json_slowly(value)


def _to_json_slowly(value: object) -> Any:
    """JSON for large numbers, surrogates and deep values, which orjson refuses."""
    try:
        text = json.dumps(value, default=_json_of, skipkeys=True, ensure_ascii=False)
        valid = text.encode("utf-8", "replace")
        return json.loads(valid, parse_constant=lambda _: None)
    except RecursionError:
        problem = "is nested too deeply for a provider; send a shorter form of it"
        raise Unstorable("message", problem) from None


def _json_of(value: object) -> object:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def json_text(value: object) -> str:
    """A value as JSON text."""
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))
