"""Reads the checkpoint files of echo_state: a JSON object of sessions.

    session id -> conversation        checkpoint -> checkpoint, oldest first
    messages, summary, metadata -> the state's values, as they are
    created_at -> saved_at            checkpoint_id -> id

A null is the same as a missing field. From a file that ends too early, as after a
crash, the complete checkpoints are read; from a damaged one, the undamaged ones, also
those behind the damage.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from holdfast.importers._fields import Fields
from holdfast.importers._files import (
    SourceFile,
    checked_text,
    digest,
    parse,
    read_head,
    read_json_text,
    shown,
    walk,
)
from holdfast.importers._json_scanner import Scanner, is_json
from holdfast.importers._reader import Damaged, Line, Reading, Save, later

LEFT_OVER = "was left over from an interrupted write"
_OPENING = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*(?:\}\s*\Z|"(?:[^"\\]|\\.)*"\s*:\s*\[\s*[\]{])'
)

# The key and the fields that every checkpoint has, and how one begins.
_ID = '"checkpoint_id"'
_FIELDS = ("session_id", "checkpoint_id", "messages", "created_at")
_CHECKPOINT = re.compile(
    r'\{(?=\s*"(?:session_id|checkpoint_id|parent_checkpoint_id|messages|summary'
    r'|metadata|created_at)"\s*:)'
)


def recognises(path: str) -> bool:
    """True if a file, or one of a folder's JSON files, looks like one of echo's."""
    return any(
        _looks_right(file.path) for file in _candidates(path, Reading(), frozenset())
    )


def read(path: str, without: frozenset[str] = frozenset()) -> Reading:
    """All sessions of a file, or of a folder's JSON files."""
    reading = Reading()
    for file in _candidates(path, reading, without):
        if os.path.isdir(path) and not _looks_right(file.path):
            reading.ignore(shown(file.path), "does not begin like a file of echo")
            continue
        with reading.attempt(shown(file.path)):
            _EchoFile(reading, file.path).read()
    for line, saves in reading.lines.items():
        paths = dict.fromkeys(save.path for save in saves)
        if len(paths) > 1:  # a backup copy, which may have what was cleaned up since
            saves.sort(key=lambda save: save.at)
            reading.infer(
                f"session {line.id!r} is in {', '.join(paths)}; its checkpoints were"
                " put in order by their times"
            )
    return reading


def _candidates(
    path: str, reading: Reading, without: frozenset[str]
) -> Iterator[SourceFile]:
    beside = [path + ".tmp", os.path.splitext(path)[0] + ".json.tmp"]
    for left_over in dict.fromkeys(beside):
        if os.path.isfile(left_over):
            reading.ignore(shown(left_over), LEFT_OVER)
    for file in walk(path, 1, reading, without):
        if ".tmp" in file.name:
            reading.ignore(shown(file.path), LEFT_OVER)
        elif file.name.endswith(".json") or not os.path.isdir(path):
            yield file


def _looks_right(path: str) -> bool:
    return _OPENING.match(read_head(path)) is not None


class _EchoFile:
    """One file, read part by part; where its structure ends, what follows is sought."""

    def __init__(self, reading: Reading, path: str) -> None:
        self.reading, self.path = reading, shown(path)
        self.text = read_json_text(path, whole=False)
        # Everything before is read.
        self.position = 0

    def read(self) -> None:
        with self.reading.attempt(self.path):
            self._read_structure()
            return
        self._read_remains()

    def _read_structure(self) -> None:
        scanner = Scanner(self.text)
        for session in scanner.members():
            self.reading.count(session, 0)
            for number, _ in enumerate(scanner.elements()):
                self.position = scanner.position
                found = scanner.span()
                part = f"checkpoint {number + 1} of session {session!r}"
                if found.count(_ID) > 1 and not is_json(found):
                    raise Damaged(f"{part} is damaged, and its end cannot be told")
                if self._put(session, found, part) or _is_object(found):
                    self.position = scanner.position
        scanner.end()

    def _put(self, session: str, text: str, part: str) -> bool:
        with self.reading.attempt(self.path, part):
            again = partial(_save, text, session, self.path)
            line = Line(kind="conversation", id=session)
            self.reading.put(line, later(again(), again))
            self.reading.count(session)
            return True
        return False

    def _read_remains(self) -> None:
        """Take every whole checkpoint behind the damage; each names its session."""
        while begin := _CHECKPOINT.search(self.text, self.position):
            scanner = Scanner(self.text, begin.start())
            record: dict[str, Any] = scanner.try_value() or {}
            self.position = begin.end()
            if all(name in record for name in _FIELDS):
                self.position = scanner.position
                self._put_remaining(begin.start(), str(record["session_id"]))

    def _put_remaining(self, start: int, session: str) -> None:
        part = f"the checkpoint of session {session!r} at character {start}"
        self._put(session, self.text[start : self.position], part)


def _is_object(text: str) -> bool:
    # A text that is not closed ends at the first quote of the next checkpoint.
    return text.startswith("{") and is_json(text)


def _save(text: str, session: str, path: str) -> Save:
    record = parse(checked_text(text))
    fields = Fields(record)
    id_, at = fields.text("checkpoint_id"), fields.seconds("created_at")
    state = _state(fields)
    fields.drop("session_id", session)
    fields.drop("parent_checkpoint_id", None)
    return Save(
        id=id_,
        at=at,
        path=path,
        digest=digest(record),
        state=lambda: state,
        origin=fields.extra(),
        messages=len(state["messages"]),
    )


def _state(fields: Fields) -> dict[str, Any]:
    state: dict[str, Any] = {"messages": fields.objects("messages")}
    summary = fields.maybe("summary", str)
    if summary is not None:
        state["summary"] = summary
    # The field can be any JSON; if it is not an object it goes to the origin.
    if isinstance(fields.rest.get("metadata"), dict):
        state["metadata"] = fields.rest.pop("metadata")
    fields.drop("metadata", None)
    return state
