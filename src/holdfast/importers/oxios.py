"""Reads the state folder of oxios: sessions, and documents in categories.

    sessions/<id>.json -> conversation of its user, with one checkpoint
    user_messages, agent_responses -> messages, merged by time
    active seed and persona, projects -> context    metadata -> metadata
    created_at, updated_at -> created_at, saved_at
    <category>/<name>.md, .json -> document <category>/<name>.md, .json

The two lists of messages do not say how they interleave: the order is inferred, and the
checkpoint says so. Fields that have no place of their own are kept under ``oxios``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

from holdfast.importers._fields import EARLIEST, LATEST, Fields, Moment
from holdfast.importers._files import (
    SourceFile,
    digest,
    read_json,
    read_text,
    shown,
    walk,
)
from holdfast.importers._reader import Line, Reading, Save, later

SESSIONS = "sessions"
DEPTH = 32
_ACTIVE = ("active_seed_id", "active_persona_id")

Timed = tuple[Moment, dict[str, Any]]


def recognises(path: str) -> bool:
    """True if a folder has a folder of sessions."""
    sessions = os.path.join(path, SESSIONS)
    return os.path.isdir(sessions) and not os.path.islink(sessions)


def read(path: str, without: frozenset[str] = frozenset()) -> Reading:
    """All sessions and documents of a folder."""
    reading = Reading()
    sessions: list[tuple[Line, Save]] = []
    for file in _candidates(path, reading, without):
        with reading.attempt(shown(file.path)):
            if file.parts[:-1] == (SESSIONS,) and file.name.endswith(".json"):
                sessions.append(_found_session(reading, file))
            else:
                _put_document(reading, file)
    reading.put_files(sessions)
    return reading


def _candidates(
    path: str, reading: Reading, without: frozenset[str]
) -> Iterator[SourceFile]:
    for file in walk(path, DEPTH, reading, without):
        if file.name.endswith(".tmp"):
            reason = "was left over from an interrupted write"
        elif len(file.parts) == 1:
            reason = "is in no category"
        elif not file.name.endswith((".md", ".json")):
            reason = "is neither markdown nor JSON"
        else:
            yield file
            continue
        reading.ignore(shown(file.path), reason)


# --- sessions -------------------------------------------------------------------------


def _found_session(reading: Reading, file: SourceFile) -> tuple[Line, Save]:
    line, save = _session(file.path)
    reading.count(SESSIONS)
    if "order_inferred" in save.metadata:
        reading.infer(
            f"order_inferred: session {line.id!r} keeps what user and agent said in two"
            " lists; they were merged by time"
        )
    return line, later(save, lambda: _session(file.path)[1])


def _session(path: str) -> tuple[Line, Save]:
    record = read_json(path)
    fields = Fields(record)
    line = Line(kind="conversation", id=fields.text("id"), owner=fields.text("user_id"))
    users = _timed(fields, "user_messages", "user")
    agents = _timed(fields, "agent_responses", "assistant")
    messages = list(_merged(users, agents))
    updated = fields.moment("updated_at")
    state = {**_about(fields, updated), "messages": messages}
    save = Save(
        at=updated.at,
        path=shown(path),
        digest=digest(record),
        state=lambda: state,
        metadata={"order_inferred": True} if users and agents else {},
        messages=len(messages),
    )
    return line, save


def _about(fields: Fields, updated: Moment) -> dict[str, Any]:
    """The values of a session beside its messages."""
    created, metadata = fields.moment("created_at"), fields.mapping("metadata")
    context = _context(fields, metadata)
    exact = {"created_at": created.remainder, "updated_at": updated.remainder}
    kept = {name: text for name, text in exact.items() if text}
    about = {"context": context, "metadata": metadata, "oxios": fields.rest | kept}
    return {"created_at": created.at} | {k: v for k, v in about.items() if v}


def _context(fields: Fields, metadata: dict[str, Any]) -> dict[str, Any]:
    """The active seed and persona under their own names, and projects as a list."""
    active = {name: fields.maybe(name, str) for name in _ACTIVE}
    context = {name: value for name, value in active.items() if value is not None}
    projects = metadata.get("project_ids")
    if isinstance(projects, str):
        projects = [project for project in projects.split(",") if project]
    return context | ({"project_ids": projects} if projects else {})


def _timed(fields: Fields, name: str, role: str) -> list[Timed]:
    return [
        _message(Fields(record, f"{name}[{index}]"), role)
        for index, record in enumerate(fields.objects(name))
    ]


def _message(fields: Fields, role: str) -> Timed:
    moment = fields.moment("timestamp")
    message: dict[str, Any] = {
        "holdfast": 1,
        "role": role,
        "content": fields.text("content"),
        "at": moment.at,
    }
    exact = {"timestamp": moment.remainder} if moment.remainder else {}
    if fields.rest or exact:
        message["metadata"] = {**fields.rest, **exact}
    return moment, message


def _merged(users: list[Timed], agents: list[Timed]) -> Iterator[dict[str, Any]]:
    """Both lists merged by time, each in its own order; the user's first if equal."""
    waiting = list(reversed(agents))
    for moment, message in users:
        while waiting and waiting[-1][0].nanoseconds < moment.nanoseconds:
            yield waiting.pop()[1]
        yield message
    yield from (message for _, message in reversed(waiting))


# --- documents ------------------------------------------------------------------------


def _put_document(reading: Reading, file: SourceFile) -> None:
    category = "/".join(file.parts[:-1])
    line = Line(kind="document", id=f"{category}/{file.name}")
    again = partial(_document, file)
    reading.put(line, later(again(), again))
    reading.count(shown(category))


def _document(file: SourceFile) -> Save:
    is_text = file.name.endswith(".md")
    content = read_text(file.path) if is_text else read_json(file.path)
    at = os.stat(file.path).st_mtime_ns // 1000
    return Save(
        at=min(max(at, EARLIEST), LATEST),
        path=shown(file.path),
        digest=digest(content),
        state=lambda: {"content": content},
    )
