"""Messages and artifacts of tasks of A2A, as its JSON has them."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from holdfast._messages.loose import fields_of, parts_of

_ROLES = {"ROLE_USER": "user", "ROLE_AGENT": "assistant"}


def read(fields: Mapping[str, object]) -> Mapping[str, object] | None:
    """A message or artifact of a task, ``None`` for any other message."""
    if "parts" not in fields:
        return None
    role = _ROLES.get(str(fields.get("role")))
    if role is None and "artifactId" in fields:
        role = "assistant"
    if role is None:
        return None
    parts = map(fields_of, parts_of(fields["parts"]))
    return {"role": role, "content": [_block(part) for part in parts]}


def _block(part: Mapping[str, object]) -> Mapping[str, object]:
    for name in ("text", "url", "filename"):
        if isinstance(part.get(name), str):
            return {"type": "text", "text": part[name]}
    if "data" in part:
        try:
            return {"type": "text", "text": orjson.dumps(part["data"]).decode()}
        except (TypeError, ValueError):
            return {"type": "text", "text": ""}
    return {"type": "text", "text": ""}
