"""Reads the folder of AetherShell's persistence: agents, conversations, checkpoints.

    agent -> agent                    conversation -> conversation of its agent
    message -> message                checkpoint -> checkpoint of its agent
    Value -> plain JSON; what JSON does not have, as {"$aether": ...} of the original
    modified_at, last_message_at, created_at -> saved_at

A checkpoint embeds an agent and its conversations as they were then: they become
earlier saves of the same threads, and the checkpoint refers to them. Its checksum is
verified over the text of the file; if it does not match, the checkpoint is reported and
left out. Fields that have no place of their own are kept under ``aether``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import md5
from typing import Any

import msgspec

from holdfast.importers._aether_records import KINDS, agent, conversation, variant
from holdfast.importers._fields import Fields
from holdfast.importers._files import (
    SourceFile,
    digest,
    parse,
    read_head,
    read_json,
    read_json_text,
    shown,
    walk,
)
from holdfast.importers._json_scanner import compact, members
from holdfast.importers._reader import Bundle, Damaged, Line, Reading, Save, later

AGENTS, CONVERSATIONS, CHECKPOINTS = "agents", "conversations", "checkpoints"
DEPTH = 2
_LOOKS = {
    AGENTS: (b'"agent_id"', b'"agent_type"'),
    CONVERSATIONS: (b'"agent_id"', b'"title"'),
    CHECKPOINTS: (b'"agent_id"', b'"agent_state"'),
}

_SUMMED = ("agent_state", CONVERSATIONS)

# From the root of a file to a record in it.
Path = tuple[str | int, ...]


class _AetherVersion(msgspec.Struct, frozen=True):
    """A version of an agent or a conversation, read from a part of a file."""

    line: Line
    save: Save


class _AetherCheckpoint(msgspec.Struct, frozen=True):
    """A verified checkpoint; the agent's version is the first of its versions."""

    versions: list[_AetherVersion]
    bundle: Bundle


def recognises(path: str) -> bool:
    """True if a folder has the three folders, or a file in one has the right keys."""
    if all(os.path.isdir(os.path.join(path, name)) for name in _LOOKS):
        return True
    return any(map(_looks_right, walk(path, DEPTH, Reading())))


def _looks_right(file: SourceFile) -> bool:
    keys = _LOOKS.get(file.parts[0]) if len(file.parts) == DEPTH else None
    head = read_head(file.path) if keys else b""
    return keys is not None and all(key in head for key in keys)


def read(path: str, without: frozenset[str] = frozenset()) -> Reading:
    """All agents, conversations and checkpoints of a folder."""
    reading = Reading()
    checkpoints: list[_AetherCheckpoint] = []
    current: list[_AetherVersion] = []
    for file in _candidates(path, reading, without):
        folder = file.parts[0]
        with reading.attempt(shown(file.path)):
            if folder == CHECKPOINTS:
                checkpoints.append(_checkpoint(reading, file.path))
            else:
                version = _version(folder, file.path, read_json(file.path), ())
                current.append(_light(version, folder, file.path, ()))
    # The versions in checkpoints are older than those in the files of their own.
    _put_checkpoints(reading, checkpoints)
    _put_current(reading, current)
    return reading


def _candidates(
    path: str, reading: Reading, without: frozenset[str]
) -> Iterator[SourceFile]:
    for file in walk(path, DEPTH, reading, without):
        known = len(file.parts) == DEPTH and file.parts[0] in _LOOKS
        if known and file.name.endswith(".json"):
            yield file
        else:
            reading.ignore(shown(file.path), "is not a file of AetherShell's")


def _version(kind: str, path: str, whole: Any, where: Path) -> _AetherVersion:
    record = whole
    for key in where:
        record = record[key]
    taken = agent(record) if kind == AGENTS else conversation(record)
    save = Save(
        at=taken.at,
        path=shown(path),
        digest=digest(record),
        state=lambda: taken.state,
        messages=len(taken.state.get("messages", ())),
    )
    return _AetherVersion(Line(kind=kind[:-1], id=taken.id, agent=taken.agent), save)


def _light(
    version: _AetherVersion, kind: str, path: str, where: Path
) -> _AetherVersion:
    """The same without its state in memory."""

    def again() -> Save:
        return _version(kind, path, read_json(path), where).save

    return _AetherVersion(version.line, later(version.save, again))


def _put_current(reading: Reading, current: list[_AetherVersion]) -> None:
    reading.put_files((version.line, version.save) for version in current)
    for version in current:
        reading.count(f"{version.line.kind}s")
        reading.count("messages", version.save.messages)
    there = {version.line for version in current}
    for line in reading.lines:
        if line not in there:
            reading.infer(
                f"{line.kind} {line.id!r} has no file of its own; it is as its agent's"
                " newest checkpoint has it"
            )


# --- checkpoints ----------------------------------------------------------------------


def _put_checkpoints(reading: Reading, checkpoints: list[_AetherCheckpoint]) -> None:
    """Add checkpoints by time; those of the same second by the names of their files."""
    checkpoints.sort(key=lambda checkpoint: checkpoint.bundle.at)
    last: dict[str, int] = {}
    for checkpoint in checkpoints:
        bundle = checkpoint.bundle
        if last.get(bundle.agent) == bundle.at:
            reading.infer(
                f"checkpoints of agent {bundle.agent!r} were made in the same second;"
                " they were put in order by the names of their files"
            )
        last[bundle.agent] = bundle.at
        reading.put_bundle(bundle, {v.line: v.save for v in checkpoint.versions})


def _checkpoint(reading: Reading, path: str) -> _AetherCheckpoint:
    text = read_json_text(path)
    whole = parse(text)
    fields = Fields(whole)
    bundle = _bundle(fields, shown(path), digest(whole))
    reading.count(CHECKPOINTS)
    _verify(reading, shown(path), fields, text)
    places: list[tuple[str, Path]] = [(AGENTS, ("agent_state",))]
    for index, _ in enumerate(fields.objects(CONVERSATIONS)):
        places.append((CONVERSATIONS, (CONVERSATIONS, index)))
    versions = [
        _light(_version(kind, path, whole, where), kind, path, where)
        for kind, where in places
    ]
    if versions[0].line.id != bundle.agent:
        raise Damaged(f"is of agent {bundle.agent!r} but holds another")
    if len({version.line for version in versions}) < len(versions):
        raise Damaged("holds a conversation twice")
    del fields.rest["agent_state"]
    origin = {**bundle.origin, **fields.extra()}
    return _AetherCheckpoint(versions, msgspec.structs.replace(bundle, origin=origin))


def _bundle(fields: Fields, path: str, digest_: str) -> Bundle:
    kept: dict[str, Any] = {}
    kind = variant(fields, "checkpoint_type", KINDS, kept)
    if kind not in KINDS.values():
        kept.setdefault("checkpoint_type", kind)
    return Bundle(
        id=fields.text("id"),
        agent=fields.text("agent_id"),
        at=fields.seconds("created_at"),
        path=path,
        digest=digest_,
        kind=kind if kind in KINDS.values() else "manual",
        name=fields.text("name"),
        description=fields.maybe("description", str),
        origin=kept,
    )


def _verify(reading: Reading, path: str, fields: Fields, text: str) -> None:
    """Compare the checksum with the text of the file.

    The order of keys is arbitrary, but the checksum was made from the same order as in
    the file. Decoding and encoding again could change the order and so the checksum.
    """
    parts = members(text)
    summed = b"[%b,%b]" % tuple(compact(parts.get(name, "")) for name in _SUMMED)
    checksum = md5(summed, usedforsecurity=False).hexdigest()
    if checksum != str(fields.rest.get("checksum")).lower():
        raise Damaged("does not match its checksum; it was left out")
    if fields.rest.get("size_bytes") != len(summed):
        reading.infer(f"{path} is right, but not as long as it says")
