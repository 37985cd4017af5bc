"""The one parser of references to checkpoints, for library, command line and tools.

``@`` is the head, ``@~3`` three before it, ``@^`` one, ``@12`` step 12 on its line;
``@{1}`` where the head was before its last move, ``@{2h}``, ``@{5 minutes ago}``,
``@{10:00}`` or ``@{2026-11-15 10:00}`` the newest on its line at that time,
``@{upstream}`` the fork point; ``label:x`` and ``tag:x`` the newest with that mark;
anything else is an id or the beginning of one.
"""

from __future__ import annotations

import re

import msgspec

from holdfast._values.moment import Moment, parse_moment
from holdfast._values.records import LONGEST_NAME, checked_name
from holdfast.errors import Unstorable

HEAD = "@"
UPSTREAM = "upstream"

_BACK = re.compile(r"@(?:~(?P<steps>[0-9]{0,18})|(?P<carets>\^+))?")
_STEP = re.compile(r"@(?P<step>[0-9]{1,18})")
_BRACED = re.compile(r"@\{(?P<inner>[^{}]+)\}")
_FORMS = "@, @~n, @^, @step, @{n}, @{2h}, @{yesterday}, @{2026-11-15}, @{upstream}"


class Back(msgspec.Struct, frozen=True):
    """The checkpoint that is ``steps`` before the head."""

    steps: int


class Step(msgspec.Struct, frozen=True):
    """The checkpoint with this step on the head's line."""

    step: int


class Moved(msgspec.Struct, frozen=True):
    """The position of the head before its last ``moves`` moves."""

    moves: int


class Upstream(msgspec.Struct, frozen=True):
    """The checkpoint that a fork started from."""


class Labelled(msgspec.Struct, frozen=True):
    """The newest with this label."""

    label: str


class Tagged(msgspec.Struct, frozen=True):
    """The newest with this tag."""

    tag: str


class Named(msgspec.Struct, frozen=True):
    """The checkpoint with this id, or the only one whose id begins with it."""

    id: str


Parsed = Back | Step | Moved | Moment | Upstream | Labelled | Tagged | Named


def parse(text: object) -> Parsed:
    """The meaning of a reference."""
    name = checked_name(text, "reference", LONGEST_NAME + len("label:"))
    if name.startswith(HEAD):
        return _parse_from_head(name)
    kind, colon, rest = name.partition(":")
    if colon and rest and kind == "label":
        return Labelled(rest)
    if colon and rest and kind == "tag":
        return Tagged(rest)
    return Named(name)


def checked_id(id_: object) -> str:
    """A caller's checkpoint id, refused if it looks like another kind of reference."""
    name = checked_name(id_, "checkpoint id")
    if name.startswith((HEAD, "label:", "tag:")):
        raise Unstorable("checkpoint id", f"{name!r} reads as a reference; change it")
    return name


def _parse_from_head(name: str) -> Parsed:
    if match := _BACK.fullmatch(name):
        if match["carets"]:
            return Back(len(match["carets"]))
        return Back(0 if match["steps"] is None else int(match["steps"] or 1))
    if match := _STEP.fullmatch(name):
        return Step(int(match["step"]))
    inner = _BRACED.fullmatch(name)
    parsed = _parse_braced(inner["inner"].strip()) if inner else None
    if parsed is None:
        raise Unstorable("reference", f"{name!r} is not one of {_FORMS}")
    return parsed


def _parse_braced(inner: str) -> Parsed | None:
    if inner == UPSTREAM:
        return Upstream()
    if inner.isascii() and inner.isdigit():
        return Moved(int(inner))
    return parse_moment(inner)
