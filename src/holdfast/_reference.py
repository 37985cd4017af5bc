"""The one parser of references to checkpoints, for library, command line and tools.

``@`` is the head, ``@~3`` three before it, ``@^`` one; ``label:x`` and ``tag:x`` the
newest with that mark; anything else is an id or the beginning of one.
"""

from __future__ import annotations

import re

import msgspec

from holdfast._records import LONGEST_NAME, checked_name
from holdfast.errors import Unstorable

HEAD = "@"

_BACK = re.compile(r"@(?:~(?P<steps>[0-9]{0,18})|(?P<carets>\^+))?")


class Back(msgspec.Struct, frozen=True):
    """So many checkpoints before the head."""

    steps: int


class Labelled(msgspec.Struct, frozen=True):
    """The newest with this label."""

    label: str


class Tagged(msgspec.Struct, frozen=True):
    """The newest with this tag."""

    tag: str


class Named(msgspec.Struct, frozen=True):
    """The one with this id, or the only one whose id begins so."""

    id: str


Parsed = Back | Labelled | Tagged | Named


def parse(text: object) -> Parsed:
    """What a reference means."""
    name = checked_name(text, "reference", LONGEST_NAME + len("label:"))
    if name.startswith(HEAD):
        return _parse_back(name)
    kind, colon, rest = name.partition(":")
    if colon and rest and kind == "label":
        return Labelled(rest)
    if colon and rest and kind == "tag":
        return Tagged(rest)
    return Named(name)


def checked_id(id_: object) -> str:
    """A caller's checkpoint id, which must not read as another kind of reference."""
    name = checked_name(id_, "checkpoint id")
    if name.startswith((HEAD, "label:", "tag:")):
        raise Unstorable("checkpoint id", f"{name!r} reads as a reference; change it")
    return name


def _parse_back(name: str) -> Back:
    match = _BACK.fullmatch(name)
    if match is None:
        raise Unstorable("reference", f"{name!r} is not one of @, @~n and @^")
    if match["carets"]:
        return Back(len(match["carets"]))
    if match["steps"] is None:
        return Back(0)
    return Back(int(match["steps"] or 1))
