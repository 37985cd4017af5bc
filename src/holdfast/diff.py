"""The structural difference of two states: what was added, removed or changed, where.

Pure: it compares values that have been loaded already.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, time
from decimal import Decimal
from difflib import SequenceMatcher
from itertools import chain, zip_longest
from operator import eq
from typing import Literal, TypeAlias, TypeGuard

import msgspec
from msgspec.structs import replace

from holdfast._values.arguments import checked_count, checked_items
from holdfast._values.shortening import ELLIPSIS

__all__ = ["Change", "Diff", "diff", "excerpt", "render_path"]

Op: TypeAlias = Literal["added", "removed", "changed"]
# Text keys and list indexes; a dict key that is not text is used as it is.
Path: TypeAlias = tuple[Hashable, ...]

_SIGNS: dict[Op, str] = {"added": "+", "removed": "-", "changed": "~"}
_VERBS: dict[Op, str] = {"added": "add", "removed": "remove", "changed": "replace"}
WIDTH = 60  # characters of a printed value
_MOST_SUMMED = 5  # values that a summary names
_CONTEXT = 20  # characters shown before the first difference of two long texts
_LONGEST_DECIMAL = 1_024  # bits; Python refuses to print much longer integers
_ALIGNMENT_LIMIT = 1_000_000  # pairs; SequenceMatcher takes up to 0.1 s for them
# Equal values of these types can differ (-0.0, 1.00, another zone), and NaN != NaN.
_LOOSELY_EQUAL = frozenset({float, complex, Decimal, datetime, time})
# What a cut must not split: an escape, a flag, a letter or emoji with its marks.
_CHARACTER = re.compile(
    r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)|[\U0001f1e6-\U0001f1ff]{2}"
    r"|.(?:[\u0300-\u036f\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]|\u200d.)*",
    re.DOTALL,
)
# Not printable for Python, but part of ordinary text: joiners, the wide space of CJK.
_HARMLESS = str.maketrans("", "", "\u200c\u200d\u3000")
_MISSING = object()


class Change(msgspec.Struct, frozen=True):
    """One difference; ``old`` is None for what was added, ``new`` for what was removed.

    The path of a removal leads to it in the old state, every other path in the new one.
    """

    op: Op
    path: Path
    old: object
    new: object

    def __str__(self) -> str:
        return change_text(self)


class Diff(msgspec.Struct, frozen=True):
    """The changes that lead from one state to another, in the order of the state."""

    changes: tuple[Change, ...]
    # Pointers count the insertions and removals before them; changes do not.
    operations: tuple[tuple[Op, str, object], ...] = ()

    def __repr__(self) -> str:
        return f"Diff({list(self.changes)!r})"

    @property
    def added(self) -> tuple[Change, ...]:
        """The values that only the new state has."""
        return self._only("added")

    @property
    def removed(self) -> tuple[Change, ...]:
        """The values that only the old state had."""
        return self._only("removed")

    @property
    def changed(self) -> tuple[Change, ...]:
        """The values that both have, and that differ."""
        return self._only("changed")

    def patch(self) -> list[dict[str, object]]:
        """RFC 6902 operations that, applied in order to the old state, give the new.

        What a JSON pointer cannot address (below a key that is not text) or change (in
        a tuple) is replaced together with the nearest value around it.
        """
        return [
            {"op": _VERBS[op], "path": pointer}
            | ({} if op == "removed" else {"value": value})
            for op, pointer, value in self.operations
        ]

    def __len__(self) -> int:
        return len(self.changes)

    def __str__(self) -> str:
        if not self.changes:
            return "no difference"
        counts = ", ".join(f"{len(self._only(op))} {op}" for op in _SIGNS)
        return "\n".join([*map(str, self.changes), counts])

    def _only(self, op: Op) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.op == op)


def diff(old: object, new: object) -> Diff:
    """The changes from ``old`` to ``new``; 1, 1.0 and True are all different.

    Dicts, lists and tuples are compared inside, anything else is one value. The order
    of a dict's keys does not count, and NaN equals NaN.
    """
    edits = list(_edits(_Pair(old, new)))
    return Diff(tuple(change for change, _ in edits), tuple(_operations(edits)))


def change_text(change: Change, width: int = WIDTH) -> str:
    """A change on one line; each value is cut to ``width`` characters."""
    if change.op == "changed":
        values = " -> ".join(_excerpts(change.old, change.new, width))
    else:
        values = excerpt(change.new if change.op == "added" else change.old, width)
    return f"{_SIGNS[change.op]} {render_path(change.path)}  {values}"


def summary(found: Diff) -> str:
    """The values of a state that changed, on one line: ``~plan, messages +2``.

    Values that were added, removed or replaced have their sign before the name; of
    others it says how much changed inside.
    """
    values: dict[Hashable, list[Change]] = {}
    for change in found.changes:
        name = change.path[0] if change.path else render_path(())
        values.setdefault(name, []).append(change)
    shown = [_summed(str(name), changes) for name, changes in values.items()]
    more = [f"{len(shown) - _MOST_SUMMED} more"] if len(shown) > _MOST_SUMMED else []
    return ", ".join([*shown[:_MOST_SUMMED], *more])


def _summed(name: str, changes: Sequence[Change]) -> str:
    if len(changes[0].path) <= 1:
        return f"{_SIGNS[changes[0].op]}{name}"
    seen = Counter(change.op for change in changes)
    inside = (f"{sign}{seen[op]}" for op, sign in _SIGNS.items() if seen[op])
    return " ".join([name, *inside])


def render_path(path: Path) -> str:
    """The path as people write it: ``messages[4].content``; ``(root)`` if empty."""
    return (
        "".join(map(_render_part, checked_items(path, "path"))).removeprefix(".")
        or "(root)"
    )


class _Pair(msgspec.Struct, frozen=True):
    """Two values to compare, at ``was`` in old and at ``now`` in old as patched so far.

    One of them may be missing; ``whole`` is the pair around this one that a patch has
    to replace because it cannot address or change what is inside.
    """

    old: object
    new: object
    was: Path = ()
    now: Path = ()
    whole: _Pair | None = None

    def inside(self, old: object, new: object, was: Hashable, now: Hashable) -> _Pair:
        return _Pair(old, new, (*self.was, was), (*self.now, now), self.whole)


_Edit: TypeAlias = tuple[Change, _Pair]
_Dict: TypeAlias = dict[Hashable, object]
_List: TypeAlias = list[object] | tuple[object, ...]


def _is_dict(value: object) -> TypeGuard[_Dict]:
    return type(value) is dict


def _is_list(value: object) -> TypeGuard[_List]:
    return type(value) is list or type(value) is tuple


def _is_set(value: object) -> TypeGuard[AbstractSet[Hashable]]:
    return type(value) is set or type(value) is frozenset


def _edits(root: _Pair) -> Iterator[_Edit]:
    # Not recursive, so that a deep state cannot exhaust the stack.
    pairs = [root]
    while pairs:
        pair = pairs.pop()
        old, new = pair.old, pair.new
        if new is _MISSING:
            yield Change("removed", pair.was, old, None), pair
        elif old is _MISSING:
            yield Change("added", pair.now, None, new), pair
        elif _is_dict(old) and _is_dict(new):
            pairs.extend(reversed([*_dict_pairs(pair, old, new)]))
        elif _is_list(old) and _is_list(new) and type(old) is type(new):
            pairs.extend(reversed([*_list_pairs(pair, old, new)]))
        elif not same(old, new):
            yield Change("changed", pair.now, old, new), pair


def _operations(edits: Iterable[_Edit]) -> Iterator[tuple[Op, str, object]]:
    replaced: _Pair | None = None
    for change, pair in edits:
        if pair.whole is None:
            yield change.op, _pointer(pair.now), change.new
        elif pair.whole is not replaced:
            replaced = pair.whole
            yield "changed", _pointer(replaced.now), replaced.new


def _pointer(path: Path) -> str:
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return "".join(f"/{part}" for part in parts)


def _dict_pairs(pair: _Pair, old: _Dict, new: _Dict) -> Iterator[_Pair]:
    matches = [*_by_key(old, new)]
    if pair.whole is None and any(
        type(key) is not str and not same(before, after)
        for key, before, after in matches
    ):
        pair = replace(pair, whole=pair)
    for key, before, after in matches:
        yield pair.inside(before, after, key, key)


def _by_key(old: _Dict, new: _Dict) -> Iterator[tuple[Hashable, object, object]]:
    rest = {_identity(key): (key, value) for key, value in new.items()}
    for key, value in old.items():
        yield key, value, rest.pop(_identity(key), (key, _MISSING))[1]
    for key, value in rest.values():
        yield key, _MISSING, value


def _list_pairs(pair: _Pair, old: _List, new: _List) -> Iterator[_Pair]:
    if pair.whole is None and isinstance(old, tuple):
        pair = replace(pair, whole=pair)
    for olds, news in _blocks(old, new):
        for i, j in zip(olds, news, strict=False):
            if _container(old[i]) is _container(new[j]):
                yield pair.inside(old[i], new[j], i, j)
            else:
                yield pair.inside(old[i], _MISSING, i, j)
                yield pair.inside(_MISSING, new[j], i, j)
        for i in olds[len(news) :]:
            yield pair.inside(old[i], _MISSING, i, news.stop)
        for j in news[len(olds) :]:
            yield pair.inside(_MISSING, new[j], olds.stop, j)


def _container(value: object) -> type | None:
    return type(value) if _is_dict(value) or _is_list(value) else None


def _blocks(old: _List, new: _List) -> Iterator[tuple[range, range]]:
    """Runs of indexes in old and in new whose elements pair up from the front."""
    head, tail = _shared_ends(old, new)
    old_end, new_end = len(old) - tail, len(new) - tail
    i = j = head
    for from_i, from_j in _anchors(old[head:old_end], new[head:new_end]):
        yield range(i, head + from_i), range(j, head + from_j)
        i, j = head + from_i, head + from_j
    yield range(i, old_end), range(j, new_end)


def _shared_ends(old: _List, new: _List) -> tuple[int, int]:
    """The numbers of equal leading and of equal trailing elements."""
    shorter = min(len(old), len(new))
    head = tail = 0
    while head < shorter and same(old[head], new[head]):
        head += 1
    while tail < shorter - head and same(old[-1 - tail], new[-1 - tail]):
        tail += 1
    return head, tail


def _anchors(old: _List, new: _List) -> Iterable[tuple[int, int]]:
    """The indexes in old and in new of elements that stayed, rising in both."""
    if len(old) <= 1 and len(new) <= 1:
        return ()
    old_marks, new_marks = [*map(_mark, old)], [*map(_mark, new)]
    old_kept, new_kept = _kept(old_marks, {*new_marks}), _kept(new_marks, {*old_marks})
    a, b = [old_marks[i] for i in old_kept], [new_marks[j] for j in new_kept]
    if a == b:  # nothing was moved or repeated: no alignment is needed
        return zip(old_kept, new_kept, strict=True)
    if len(a) * len(b) > _ALIGNMENT_LIMIT:
        return ()

    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return (
        (old_kept[i + offset], new_kept[j + offset])
        for i, j, size in blocks
        for offset in range(size)
    )


def _kept(marks: list[int], others: set[int]) -> list[int]:
    return [index for index, mark in enumerate(marks) if mark in others]


def _mark(value: object) -> int:
    # Only a hint: elements with equal marks are paired, and compared afterwards.
    try:
        return hash(_identity(value))
    except (TypeError, RecursionError):
        return hash(type(value))


def same(old: object, new: object) -> bool:
    """True if two values are equal in every type, so that `diff` finds nothing."""
    pairs = [(old, new)]
    while pairs:
        a, b = pairs.pop()
        if a is b:
            continue
        if type(a) is not type(b):
            return False
        if _is_dict(a) and _is_dict(b):
            pairs.extend((before, after) for _, before, after in _by_key(a, b))
        elif _is_list(a) and _is_list(b):
            pairs.extend(zip_longest(a, b, fillvalue=_MISSING))
        elif _identity(a) != _identity(b):
            return False
    return True


def _identity(value: object) -> object:
    """Equal for two values exactly if they are equal and of equal types."""
    kind = type(value)
    if kind is str:
        return value
    if kind in _LOOSELY_EQUAL:
        return kind, repr(value)
    if _is_list(value):
        return kind, tuple(map(_identity, value))
    if _is_set(value):
        return kind, frozenset(map(_identity, value))
    if _is_dict(value):
        return kind, frozenset(map(_identity, value.items()))
    return kind, value


def _render_part(part: Hashable) -> str:
    if isinstance(part, str) and part.isidentifier():
        return f".{part}"
    return f"[{''.join(_pieces(part))}]"


def _excerpts(old: object, new: object, width: int) -> list[str]:
    """Both values cut to fit, long texts from shortly before they differ."""
    if isinstance(old, str) and isinstance(new, str):
        a, b = _CHARACTER.findall(old), _CHARACTER.findall(new)
        start = [*map(eq, a, b), False].index(False) - _CONTEXT
        if start > 0 and max(len(a), len(b)) > width - len('""'):
            rests = ("".join(text[start:]) for text in (a, b))
            return [ELLIPSIS + excerpt(rest, width) for rest in rests]
    return [excerpt(old, width), excerpt(new, width)]


def excerpt(value: object, width: int = WIDTH) -> str:
    """A value on one line, cut where it is long."""
    checked_count(width, "width")
    text = ""
    for piece in _pieces(value):
        if len(text) + len(piece) > width:
            return text + ELLIPSIS
        text += piece
    return text


def _pieces(value: object) -> Iterator[str]:
    """The value's text, in parts that must not be cut; JSON if possible, else Python.

    Lazy, so that a caller that stops early does not walk a large or deep value.
    """
    if _is_dict(value):
        items = (chain(_pieces(k), [": "], _pieces(v)) for k, v in value.items())
        return _listed("{", items, "}")
    if _is_list(value):
        opening, closing = "()" if isinstance(value, tuple) else "[]"
        return _listed(opening, map(_pieces, value), closing)
    if _is_set(value):
        members = sorted(map(excerpt, value))
        return _listed(f"{type(value).__name__}(", ([text] for text in members), ")")
    text = _atom_text(value)
    if text.isascii() and text.isprintable() and "\\" not in text:
        return iter(text)  # every character may be cut from the next one
    return (_visible(found[0]) for found in _CHARACTER.finditer(text))


def _listed(
    opening: str, items: Iterable[Iterable[str]], closing: str
) -> Iterator[str]:
    yield opening
    for position, item in enumerate(items):
        yield ", " if position else ""
        yield from item
    yield closing


def _atom_text(value: object) -> str:
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and value.bit_length() > _LONGEST_DECIMAL:
        return hex(value)
    return repr(value)


def _visible(character: str) -> str:
    if character.translate(_HARMLESS).isprintable():
        return character
    return character.encode("unicode_escape").decode()
