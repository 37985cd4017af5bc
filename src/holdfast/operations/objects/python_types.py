"""The shapes of types of Python that need no permission."""

from __future__ import annotations

import ipaddress
import pathlib
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import timezone
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import SecretBytes, SecretStr

from holdfast.operations.objects.shapes import Fields, NotStorable, Shape

# The factories that a stored `defaultdict` may have.
_FACTORIES: dict[str, Any] = {
    factory.__name__: factory
    for factory in (list, dict, set, int, float, str, bool, tuple)
}


def python_shapes() -> dict[type, Shape]:
    """The shapes of types of Python that hold values, and of secrets."""
    return {
        timezone: Shape("timezone", _zone, lambda f: timezone(**f)),
        ZoneInfo: shape_of_one(ZoneInfo, lambda zone: zone.key),
        bytearray: shape_of_one(bytearray, bytes),
        deque: Shape("deque", _queue, lambda f: deque(f["items"], f["maxlen"])),
        OrderedDict: shape_of_one(OrderedDict, dict),
        Counter: shape_of_one(Counter, dict),
        defaultdict: Shape("defaultdict", _defaulting, _defaulted),
        re.Pattern: Shape("Pattern", _pattern, lambda f: re.compile(**f)),
        SecretStr: shape_of_one(SecretStr, _secret),
        SecretBytes: shape_of_one(SecretBytes, _secret),
        **{class_: shape_of_one(class_, str) for class_ in (*_ADDRESSES, *_PATHS)},
    }


def shape_of_one(class_: Any, value_of: Callable[[Any], object]) -> Shape:
    """The shape of a class whose constructor takes one value."""

    def dump(instance: object) -> Fields:
        return {"value": value_of(instance)}

    return Shape(class_.__name__, dump, lambda fields: class_(fields["value"]))


def _secret(secret: SecretStr | SecretBytes) -> str | bytes:
    return secret.get_secret_value()


def _zone(zone: timezone) -> Fields:
    return {"offset": zone.utcoffset(None), "name": zone.tzname(None)}


def _queue(queue: deque[Any]) -> Fields:
    return {"items": list(queue), "maxlen": queue.maxlen}


def _pattern(pattern: re.Pattern[Any]) -> Fields:
    return {"pattern": pattern.pattern, "flags": pattern.flags}


def _defaulting(value: defaultdict[Any, Any]) -> Fields:
    factory = value.default_factory
    name = None if factory is None else getattr(factory, "__name__", "")
    if name is not None and _FACTORIES.get(name) is not factory:
        raise NotStorable("a defaultdict whose factory is not an empty builtin")
    return {"items": dict(value), "factory": name}


def _defaulted(fields: Fields) -> object:
    name = fields["factory"]
    return defaultdict(None if name is None else _FACTORIES[name], fields["items"])


_ADDRESSES: tuple[type, ...] = (
    ipaddress.IPv4Address,
    ipaddress.IPv4Interface,
    ipaddress.IPv4Network,
    ipaddress.IPv6Address,
    ipaddress.IPv6Interface,
    ipaddress.IPv6Network,
)
# Of the concrete paths only this system's: others cannot be created here.
_PATHS: tuple[type, ...] = (
    type(pathlib.Path()),
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
)
