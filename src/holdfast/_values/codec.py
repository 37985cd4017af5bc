"""Values to JSON text and back, equal and of equal types, or the value is refused.

A typed object, such as a dataclass, becomes the mapping of its fields.

Types that JSON does not have are written with a tag. The table of tags is closed, so
that no stored text can make code run.
"""

from __future__ import annotations

import json
import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import partial
from itertools import chain
from math import isfinite
from types import NoneType
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import orjson

from holdfast._values import typed
from holdfast._values.limits import (
    LARGEST_STATE,
    check_least_size,
    check_memory,
    is_memory_limited,
    no_memory,
)
from holdfast.errors import Corrupt, Unstorable

_Moment = TypeVar("_Moment", datetime, time)
_Value: TypeAlias = Any
# Type checkers take the type of such a value for a type of anything.
_type_of: Callable[[object], type[object]] = type

# If one level has more parts than this, each part is measured by itself.
MANY = 1 << 21
# From this size on, the memory that orjson needs is checked first if the program runs
# under a memory limit: for the text as orjson reads it, as characters of Python, and
# for each part.
LARGE, TEXT_MEMORY, PART_MEMORY = 256 << 10, 12, 300
_MARKS = b",", b"[", b"{"
UNKNOWN = -1
MARKER = b'{"$hf.'
_PREFIX = "$hf."
_QUOTED_PREFIX = b'"$hf.'
_OPENING = re.compile(re.escape(MARKER))
_EXACT_TYPES = (
    orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
# orjson refuses more than 254 levels; tags of the innermost value need some of them.
_MAX_DEPTH = 200
_TOO_DEEP = (
    f"is more than {_MAX_DEPTH} levels deep, or inside itself; refer to it by id"
)


def encode(value: object, path: str = "state", most: int = LARGEST_STATE) -> bytes:
    """The JSON text from which `decode` makes an equal value of equal types.

    Raises `Unstorable` with the path of the first part that cannot be stored; ``path``
    is the path of the value itself. A value that certainly takes more than ``most``
    bytes is refused before it is encoded. The check is cheap and not exact, so the text
    may still be longer.
    """
    try:
        return _encode(value, path, most)
    except MemoryError:
        raise no_memory() from None


def _encode(value: object, path: str, most: int) -> bytes:
    # This is as fast as orjson where it is exact, which is most often.
    size = _exact_size(value, MANY)
    least = _measured(value) if size is None or size == UNKNOWN else size
    check_least_size(least, path, most)
    if least >= LARGE and is_memory_limited():
        check_memory(_most_memory(value))
    if size is None:
        return _encode_tagged(value, path)
    try:
        text = orjson.dumps(value, _tag, _EXACT_TYPES)
    except TypeError:
        check_least_size(_measured(value), path, most)
        return _encode_tagged(value, path)
    # One byte is found much faster than six.
    has_prefix = b"$" in text and _QUOTED_PREFIX in text
    if size == UNKNOWN or has_prefix:
        found = _exact_size(value, len(text), has_prefix=has_prefix)
        return text if found is not None else _encode_tagged(value, path)
    return text


def decode(data: bytes | bytearray | memoryview) -> object:
    """The value that `encode` was given. Raises `Corrupt` for any other bytes."""
    if len(data) >= LARGE and is_memory_limited():
        parts = sum([data.count(mark) for mark in _MARKS]) if type(data) is bytes else 0
        check_memory(TEXT_MEMORY * len(data) + PART_MEMORY * parts)
    text = bytes(data) if isinstance(data, memoryview) else data
    try:
        value: object = orjson.loads(text)
        # Measured on 0.9 MB: finding one byte 9 us, the pattern 265 us, loads 440 us.
        tagged = b"$" in text and _OPENING.search(text)
        return _UNTAG[type(value)](value) if tagged else value
    except MemoryError:
        raise no_memory() from None
    # Constructors raise these for a damaged payload: Decimal an ArithmeticError, and
    # nesting deeper than `encode` writes a RecursionError.
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise Corrupt("a stored value", str(error)) from error


def flattened(value: object, path: str = "state") -> object:
    """A typed object as plain values, any other value as it is.

    Raises `Unstorable` unless loading it with its type gives an equal object.
    """
    if type(value) in _STORABLE or not typed.is_typed(type(value)):
        return value
    try:
        found = typed.plain(value)
        encode(found, path)  # names the part that cannot be stored
        typed.check(value, found, path)
    except RecursionError:
        raise Unstorable(path, _TOO_DEEP) from None
    return found


def _exact_size(value: _Value, most: int, *, has_prefix: bool = False) -> int | None:
    """A lower bound of the bytes of orjson's text, if it decodes to this value.

    ``None`` if not, and `UNKNOWN` if there are more than ``most`` parts to look at.

    The types must be checked, since the text does not show them: [1, 2] and (1, 2),
    None and NaN give the same text, and a str enum equals the str that would come back.
    Going level by level keeps the loops in C. Keys are looked at only if the text has
    the prefix of reserved ones.
    """
    # Most often it is a list of messages, of which only the elements are looked at.
    elements: list[_Value] = value
    level: list[_Value] | None = elements if type(value) is list else [value]
    size = 0
    for _ in range(_MAX_DEPTH):
        if not level:
            return None if level is None else size
        if len(level) > most:  # one that contains itself has any number
            return UNKNOWN
        types = list(map(type, level))
        kind = types[0]
        size += len(level)
        # Counting one type takes half the time of putting all of them into a set.
        if types.count(kind) != len(types):
            level, more = _inner_of_mixed(level, has_prefix=has_prefix)
        else:
            level, more = _inner(level, kind, has_prefix=has_prefix)
        size += more
    return None


# The parts inside values (None if one would not be kept exactly), and the bytes of
# texts.
_Inner: TypeAlias = tuple[list[_Value] | None, int]


def _inner(  # noqa: PLR0911 - one a kind
    level: list[_Value], kind: type, *, has_prefix: bool
) -> _Inner:
    """Of values of one type."""
    if kind in _SIZED:
        return [], sum(map(len, level))
    if kind is list:
        return [*chain.from_iterable(level)], 0
    if kind is dict:
        if has_prefix and _has_reserved_key(level):
            return None, 0
        return [*chain.from_iterable(map(_values_of, level))], 0
    if kind in _SETS:
        return [], sum(map(_measured, level))
    if kind is float and not all(map(isfinite, level)):
        return None, 0
    return ([] if kind in _NEVER_ALTERED else None), 0


def _inner_of_mixed(level: list[_Value], *, has_prefix: bool) -> _Inner:
    """Of values of several types."""
    kinds = set(map(type, level))
    if not kinds <= _NEVER_ALTERED:
        return None, 0
    below: list[_Value] = []
    size = 0
    for kind in kinds & _WITH_PARTS:
        alike = [value for value in level if type(value) is kind]
        found, more = _inner(alike, kind, has_prefix=has_prefix)
        if found is None:
            return None, 0
        below += found
        size += more
    return below, size


def _measured(value: object) -> int:
    """A lower bound of the bytes of any value's text, as far as it is cheap to find."""
    try:
        return _least_size(value, {}, 0)
    except RecursionError:  # to encode it will fail as well
        return 0


def _least_size(value: _Value, known: dict[int, int], depth: int) -> int:
    """A lower bound of the bytes of any value's text.

    An object that is used in several places is measured once and counted in each.
    """
    kind = _type_of(value)
    if kind in _SIZED:
        return len(value)
    if kind not in _CONTAINERS or depth > _MAX_DEPTH:
        return 1
    size = known.get(id(value))
    if size is None:
        known[id(value)] = 1  # it may contain itself
        parts = chain(value.keys(), value.values()) if kind is dict else value
        size = 1 + sum([1 + _least_size(part, known, depth + 1) for part in parts])
        known[id(value)] = size
    return size


def _most_memory(value: object) -> int:
    """The most bytes that orjson takes to write a value.

    It makes room for eight times the longest text, and doubles what it has.
    """
    longest = 0
    known: dict[int, int] = {}

    def most(value: _Value, depth: int) -> int:
        nonlocal longest
        kind = _type_of(value)
        if kind in _CONTAINERS and depth <= _MAX_DEPTH:
            if id(value) not in known:
                known[id(value)] = 0
                parts = chain(value.keys(), value.values()) if kind is dict else value
                found = 2 + sum([2 + most(part, depth + 1) for part in parts])
                known[id(value)] = found
            return known[id(value)]
        if kind not in _SIZED:
            return 64 if kind is not int else 64 + value.bit_length()
        ascii_only = kind is str and value.isascii()
        size = len(value) if ascii_only else (4 if kind is str else 2) * len(value)
        longest = max(longest, size)
        return size

    try:
        return 4 * most(value, 0) + 16 * longest
    except RecursionError:
        return 0


def _has_reserved_key(dicts: list[dict[str, _Value]]) -> bool:
    return any(key.startswith(_PREFIX) for key in set[str]().union(*dicts))


def _encode_tagged(value: object, path: str) -> bytes:
    """The text of any storable value; raises with the path of what is not storable."""
    try:
        return orjson.dumps(_rebuild(value, path, 0))
    except RecursionError:
        raise Unstorable(path, _TOO_DEEP) from None


def _rebuild(value: object, path: str, depth: int) -> object:
    value = flattened(value, path)
    if type(value) not in _CONTAINERS:
        return _rebuild_scalar(value, path)
    if depth >= _MAX_DEPTH:
        raise Unstorable(path, _TOO_DEEP)
    return _CONTAINERS[type(value)](value, path, depth + 1)


def _rebuild_scalar(value: object, path: str) -> object:
    if type(value) not in _STORABLE:
        raise Unstorable(path, _refusal(value))
    try:
        return value if _is_json(value) else _tag(value)
    except ValueError as error:
        raise Unstorable(path, str(error)) from None


def _rebuild_list(value: Iterable[_Value], path: str, depth: int) -> list[_Value]:
    items = list(value)
    for n, item in enumerate(items):
        if not _is_json(item):
            items[n] = _rebuild(item, f"{path}[{n}]", depth)
    return items


def _rebuild_tagged(value: Iterable[_Value], path: str, depth: int) -> object:
    if type(value) not in (set, frozenset):
        return {_TAGS[type(value)]: _rebuild_list(value, path, depth + 1)}
    for n, item in enumerate(value):
        typed.check_key(item, f"{path}[{n}]")
    items = _rebuild_list(value, path, depth + 1)
    items.sort(key=orjson.dumps)
    return {_TAGS[type(value)]: items}


def _rebuild_dict(value: dict[_Value, _Value], path: str, depth: int) -> object:
    if not _is_object(value):
        return _rebuild_pairs(value, path, depth + 2)
    items = dict(value)
    for key, item in value.items():
        if not _is_json(item):
            items[key] = _rebuild(item, path + _step(key), depth)
    return items


def _is_object(value: dict[_Value, _Value]) -> bool:
    if not all(type(key) is str and _is_unicode(key) for key in value):
        return False
    return not next(iter(value), "").startswith(_PREFIX)


def _rebuild_pairs(value: dict[_Value, _Value], path: str, depth: int) -> object:
    pairs: list[list[object]] = []
    for n, (key, item) in enumerate(value.items()):
        typed.check_key(key, f"{path}.keys()[{n}]")
        rebuilt_key = _rebuild(key, f"{path}.keys()[{n}]", depth)
        pairs.append([rebuilt_key, _rebuild(item, path + _step(key), depth)])
    return {_TAGS[dict]: pairs}


def _step(key: object) -> str:
    if not isinstance(key, str):
        return f"[{key!r}]"
    if key.isidentifier():
        return f".{key}"

    return f"[{json.dumps(key)}]"


def _is_json(value: object) -> bool:
    check = _JSON.get(type(value))
    return check is not None and check(value)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _tag(value: object) -> object:
    kind = type(value)
    return {_TAGS[kind]: _DUMPS[kind](value)}


def _refusal(value: object) -> str:
    kind = type(value)
    by_attribute = (_HINTS[name] for name in _HINTS if hasattr(kind, name))
    by_base = (_BASE_HINTS[base] for base in kind.__mro__ if base in _BASE_HINTS)
    otherwise = _LOOK_UP if callable(value) else _PLAIN_DATA
    hint = next(chain(by_attribute, by_base), otherwise)
    return f"{kind.__name__} is not storable; {hint}"


def _untag_list(items: list[_Value]) -> object:
    for n, item in enumerate(items):
        if type(item) in _UNTAG:
            items[n] = _UNTAG[type(item)](item)
    return items


def _untag_dict(items: dict[str, _Value]) -> object:
    for key, item in items.items():
        if type(item) in _UNTAG:
            items[key] = _UNTAG[type(item)](item)
    tag = next(iter(items), "")
    return _load(tag, items) if tag.startswith(_PREFIX) else items


def _load(tag: str, items: dict[str, object]) -> object:
    payload = items[tag]
    load = _LOADS.get(type(payload), {}).get(tag)
    if load is None or len(items) != 1:
        raise ValueError(f"{tag!r} is an unknown tag, or its payload is wrong")
    return load(payload)


def _dump_int(value: int) -> str:
    # Python can be set to refuse decimal text, but never below 640 digits; hexadecimal
    # text is never refused.
    return str(value) if value.bit_length() <= 2048 else hex(value)  # noqa: PLR2004


def _dump_simple_set(value: Iterable[_Value]) -> list[_Value]:
    if not set(map(type, value)) <= {str, int}:
        raise TypeError("the members may need tags of their own")
    return sorted(value, key=orjson.dumps)


def _dump_moment(value: datetime | time) -> object:
    """ISO text; with the fold and the name of the zone, if it has a name of its own."""
    text, name = value.isoformat(), _zone_name(value)
    return text if name is None and not value.fold else [text, value.fold, name]


def _zone_name(value: datetime | time) -> object:
    zone = value.tzinfo
    if zone is None or zone is UTC:
        return None
    # Python reads the text of an offset of -1 microsecond as UTC.
    if type(zone) is not timezone or zone.utcoffset(None).microseconds:
        raise ValueError(
            f"{type(value).__name__} with the time zone {zone!r} is not storable;"
            " give it a fixed offset, as .astimezone(timezone.utc) does"
        )
    name = zone.tzname(None)
    if name == timezone(zone.utcoffset(None)).tzname(None):
        return None
    return name if _is_unicode(name) else _tag(name)


def _load_moment(kind: type[_Moment], payload: list[_Value]) -> _Moment:
    text, fold, name = payload
    value = kind.fromisoformat(text).replace(fold=fold)
    if name is None:
        return value
    offset: _Value = value.utcoffset()
    return value.replace(tzinfo=timezone(offset, name))


def _load_timedelta(payload: list[_Value]) -> timedelta:
    days, seconds, microseconds = payload
    if set(map(type, payload)) != {int}:
        raise TypeError("a timedelta is made of integers")
    return timedelta(days, seconds, microseconds)


def _load_dict(payload: list[_Value]) -> dict[_Value, _Value]:
    if not set(map(type, payload)) <= {list}:
        raise TypeError("a dict is made of pairs")
    return dict(payload)


def _load_float(payload: str) -> float:
    if payload not in ("nan", "inf", "-inf"):
        raise ValueError("not a float that needs a tag")
    return float(payload)


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _load_bytes(payload: str) -> bytes:
    return a2b_base64(payload, strict_mode=True)


_CONTAINERS: dict[type, Callable[[_Value, str, int], object]] = {
    dict: _rebuild_dict,
    list: _rebuild_list,
    tuple: _rebuild_tagged,
    set: _rebuild_tagged,
    frozenset: _rebuild_tagged,
}
_JSON: dict[type, Callable[[_Value], bool]] = {
    NoneType: lambda _: True,
    bool: lambda _: True,
    int: lambda value: -(2**63) <= value < 2**64,
    float: isfinite,
    str: _is_unicode,
}
_DUMPS: dict[type, Callable[[_Value], object]] = {
    int: _dump_int,
    float: str,
    str: lambda value: _base64(value.encode("utf-8", "surrogatepass")),
    bytes: _base64,
    datetime: _dump_moment,
    date: date.isoformat,
    time: _dump_moment,
    timedelta: lambda value: [value.days, value.seconds, value.microseconds],
    Decimal: str,
    UUID: str,
    set: _dump_simple_set,
    frozenset: _dump_simple_set,
}
_LOADS: dict[type, dict[str, Callable[[_Value], object]]] = {
    str: {
        "$hf.int": lambda text: int(text, 0),
        "$hf.float": _load_float,
        "$hf.str": lambda text: _load_bytes(text).decode("utf-8", "surrogatepass"),
        "$hf.bytes": _load_bytes,
        "$hf.datetime": datetime.fromisoformat,
        "$hf.date": date.fromisoformat,
        "$hf.time": time.fromisoformat,
        "$hf.decimal": Decimal,
        "$hf.uuid": UUID,
    },
    list: {
        "$hf.datetime": partial(_load_moment, datetime),
        "$hf.time": partial(_load_moment, time),
        "$hf.timedelta": _load_timedelta,
        "$hf.tuple": tuple,
        "$hf.set": set,
        "$hf.frozenset": frozenset,
        "$hf.dict": _load_dict,
    },
}
_UNTAG: dict[type, Callable[[_Value], object]] = {
    dict: _untag_dict,
    list: _untag_list,
}
_STORABLE = _CONTAINERS.keys() | _JSON.keys() | _DUMPS.keys()
# orjson writes a tuple as a list and a UUID as text without calling the hook.
_NEVER_ALTERED = _STORABLE - {tuple, UUID}
_SIZED = frozenset({str, bytes})
_SETS = frozenset({set, frozenset})
_WITH_PARTS = _SIZED | _SETS | {dict, list, float}
_values_of = dict[Any, Any].values
_TAGS = {kind: _PREFIX + kind.__name__.lower() for kind in _STORABLE}

_LOOK_UP = "keep its name and look it up after loading"
_PLAIN_DATA = "pass plain data such as dict, list, str, numbers, bytes or datetime"
# By attribute, so that no optional library has to be imported.
_HINTS = {
    "_member_map_": "pass its .value",
    "__attrs_attrs__": "pass attrs.asdict(...) and load with type=",
    "_asdict": "pass tuple(...) and load with type=",
    "__array__": "pass .tolist()",
}
_BASE_HINTS = {kind: f"pass a plain {kind.__name__}" for kind in _STORABLE} | {
    bytearray: "pass bytes(...)",
    memoryview: "pass bytes(...)",
    complex: "pass [z.real, z.imag]",
}
