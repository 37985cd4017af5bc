"""Reads checkpoints of cortex: JSON files of one checkpoint each, or of a list of them.

    thread_id -> thread               checkpoint -> checkpoint, parents first
    state -> the state, as it is      id, label, tags -> the same
    custom -> metadata                created_at -> saved_at
    step -> the same step, unless it is not above the step before it

Step and parent of the source are kept with the checkpoint too: steps begin again when a
program restarts, and checkpoints between may be missing. A list of metadata alone has
no states; its entries are reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Any

import msgspec

from holdfast.importers._fields import Fields
from holdfast.importers._files import (
    SourceFile,
    digest,
    parse,
    read_head,
    read_json_text,
    shown,
    walk,
)
from holdfast.importers._json_scanner import compact, elements, members
from holdfast.importers._reader import Line, Reading, Save, later

_OPENING = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{\s*"(metadata|state|id)"\s*:')

_Order = tuple[int, int, int]


class _CortexSave(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint; ``save`` is None if only its metadata exists."""

    path: str
    thread: str
    id: str
    step: int
    parent: str | None
    save: Save | None
    size_is_wrong: bool = False


def recognises(path: str) -> bool:
    """True if a file, or one of a folder's JSON files, holds cortex checkpoints."""
    return any(map(_looks_right, _candidates(path, Reading(), frozenset())))


def read(path: str, without: frozenset[str] = frozenset()) -> Reading:
    """All checkpoints of a file, or of a folder's JSON files."""
    reading = Reading()
    found: list[_CortexSave] = []
    for file in _candidates(path, reading, without):
        with reading.attempt(shown(file.path)):
            found += _read_file(reading, file.path)
    whole = [checkpoint for checkpoint in found if checkpoint.save is not None]
    last: dict[str, _CortexSave] = {}
    for checkpoint in _in_order(whole):
        _put(reading, checkpoint, last.get(checkpoint.thread))
        last[checkpoint.thread] = checkpoint
    _report_missing(reading, found)
    return reading


def _candidates(
    path: str, reading: Reading, without: frozenset[str]
) -> Iterator[SourceFile]:
    for file in walk(path, 1, reading, without):
        if file.name.endswith(".json") or not os.path.isdir(path):
            yield file
        else:
            reading.ignore(shown(file.path), "is not a JSON file")


def _looks_right(file: SourceFile) -> bool:
    head = read_head(file.path)
    return _OPENING.match(head) is not None and b'"thread_id"' in head


def _read_file(reading: Reading, path: str) -> Iterator[_CortexSave]:
    for index, text in enumerate(elements(read_json_text(path))):
        with reading.attempt(shown(path), f"checkpoint {index + 1}"):
            yield _found(text, path, index)


def _found(text: str, path: str, index: int) -> _CortexSave:
    record = Fields(parse(text))
    about = record if "state" not in record.rest else _metadata(record)
    found = _CortexSave(
        path=shown(path),
        thread=about.text("thread_id"),
        id=about.text("id"),
        step=about.number("step"),
        parent=about.maybe("parent_id", str),
        save=None,
    )
    if "state" not in record.rest:
        return found
    again = partial(_save_again, path, index)
    size = about.maybe("state_size", int)
    measured = len(compact(members(text)["state"]))
    return msgspec.structs.replace(
        found,
        save=later(_save(text, shown(path)), again),
        size_is_wrong=size not in (None, measured),
    )


def _metadata(record: Fields) -> Fields:
    return Fields(record.rest.get("metadata"), "metadata")


def _save_again(path: str, index: int) -> Save:
    text = next(islice(elements(read_json_text(path)), index, None), "null")
    return _save(text, shown(path))


def _save(text: str, path: str) -> Save:
    record = Fields(parse(text))
    about = _metadata(record)
    state = record.rest.pop("state", None)
    kept: dict[str, Any] = {
        "step": about.number("step"),
        "parent": about.maybe("parent_id", str),
        "state_size": about.maybe("state_size", int),
    }
    save = Save(
        id=about.text("id"),
        at=about.seconds("created_at"),
        path=path,
        digest=digest(parse(text)),
        state=lambda: state,
        label=about.maybe("label", str),
        tags=tuple(about.texts("tags")),
        metadata=about.mapping("custom"),
        step=kept["step"],
    )
    del about.rest["thread_id"], record.rest["metadata"]
    if about.rest:
        record.rest["metadata"] = about.rest
    return msgspec.structs.replace(save, origin={**kept, **record.extra()})


def _put(reading: Reading, checkpoint: _CortexSave, last: _CortexSave | None) -> None:
    assert checkpoint.save is not None
    linked = last is None or last.id == checkpoint.parent
    if not linked and last and last.save and last.save.at == checkpoint.save.at:
        reading.infer(
            f"checkpoints of thread {checkpoint.thread!r} were made in the same second;"
            " they were put in order by their steps"
        )
    reading.put(Line(kind="thread", id=checkpoint.thread), checkpoint.save)
    reading.count(checkpoint.thread)
    if checkpoint.size_is_wrong:
        reading.infer(
            f"checkpoint {checkpoint.id!r} of thread {checkpoint.thread!r} is not as"
            " long as it says; its state was taken as it is"
        )


def _report_missing(reading: Reading, found: Iterable[_CortexSave]) -> None:
    """Report the checkpoints of which only metadata, or a child, exists."""
    there = {(c.thread, c.id) for c in found if c.save is not None}
    for checkpoint in found:
        about = f"checkpoint {checkpoint.id!r} of thread {checkpoint.thread!r}"
        if checkpoint.save is None:
            is_there = (checkpoint.thread, checkpoint.id) in there
            text = f"has no state for {about}" + (", which is elsewhere" * is_there)
            reading.ignore(checkpoint.path, text)
        elif checkpoint.parent and (checkpoint.thread, checkpoint.parent) not in there:
            parent = checkpoint.parent
            reading.infer(f"{about} follows {parent!r}, whose state is not there")


def _in_order(found: list[_CortexSave]) -> Iterator[_CortexSave]:
    """Parents before their children, otherwise by time and step.

    Steps alone do not suffice: they restart when the program restarts.
    """
    orders = [_order(checkpoint, index) for index, checkpoint in enumerate(found)]
    keys = {(checkpoint.thread, checkpoint.id) for checkpoint in found}
    children: dict[tuple[str, str], list[_Order]] = {}
    ready: list[_Order] = []
    for order, checkpoint in zip(orders, found, strict=True):
        above = checkpoint.thread, checkpoint.parent or ""
        waits = above in keys and checkpoint.parent != checkpoint.id
        (children.setdefault(above, []) if waits else ready).append(order)
    heapify(ready)
    left = dict.fromkeys(sorted(orders))
    while left:
        # If parents form a cycle, begin with the oldest.
        order = heappop(ready) if ready else next(iter(left))
        if order in left:
            del left[order]
            checkpoint = found[order[2]]
            yield checkpoint
            for child in children.pop((checkpoint.thread, checkpoint.id), ()):
                heappush(ready, child)


def _order(checkpoint: _CortexSave, index: int) -> _Order:
    assert checkpoint.save is not None
    return checkpoint.save.at, checkpoint.step, index
