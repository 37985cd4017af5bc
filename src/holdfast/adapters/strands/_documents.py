"""Bytes of a storage as a state, so that versions of a document share equal parts.

The bytes come back as they were written: JSON is split into values only if it has the
exact form in which Strands writes it. A snapshot becomes a state with its fields as
values, the messages among them; the rest is kept under the name ``snapshot``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

SNAPSHOT = "snapshot"
DATA = "data"
CREATED = "created_at"


def state_of(data: bytes) -> dict[str, Any]:
    """A state that holds the bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"bytes": data}
    try:
        document = json.loads(text)
        is_ours = _written(document) == data
    except (ValueError, RecursionError):
        return {"text": text}
    return _taken_apart(document) if is_ours else {"text": text}


def bytes_of(state: Mapping[str, Any]) -> bytes:
    """The bytes that a state holds."""
    if SNAPSHOT in state:
        return _written(_put_together(state))
    if "document" in state:
        return _written(state["document"])
    if "text" in state:
        return str(state["text"]).encode()
    return bytes(state["bytes"])


def says_the_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True if two states are equal but for the time of the write."""
    return _timeless(one) == _timeless(other)


def _timeless(state: Mapping[str, Any]) -> dict[str, Any]:
    if SNAPSHOT not in state:
        return dict(state)
    return {**state, SNAPSHOT: {**state[SNAPSHOT], CREATED: None}}


def _written(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def _taken_apart(document: Any) -> dict[str, Any]:
    if not _is_snapshot(document):
        return {"document": document}
    fields: dict[str, Any] = document[DATA]
    # The names keep the order of the fields, which is part of the bytes.
    return {SNAPSHOT: {**document, DATA: list(fields)}, **fields}


def _is_snapshot(document: Any) -> bool:
    if not isinstance(document, dict) or DATA not in document:
        return False
    fields = cast("dict[str, object]", document)[DATA]
    return isinstance(fields, dict) and SNAPSHOT not in fields


def _put_together(state: Mapping[str, Any]) -> dict[str, Any]:
    snapshot = state[SNAPSHOT]
    return {**snapshot, DATA: {name: state[name] for name in snapshot[DATA]}}
