"""The form in which transcripts of Claude are stored: names of threads, and states.

The messages of a transcript stand in one list, as people read them. Bookkeeping, such
as titles and costs, stands in another, each with the number of messages before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast
from urllib.parse import quote, unquote

import msgspec

from holdfast.errors import Unstorable

TranscriptEntry: TypeAlias = dict[str, Any]

PREFIX = "claude:"
KINDS = SESSION, SUBAGENT = "claude-session", "claude-subagent"
MESSAGES, BOOKKEEPING, LENGTH = "messages", "bookkeeping", "length"
_SPEAKERS = frozenset({"user", "assistant"})
# An id may be any text; Python's own JSON gives lone surrogates, too.
_ERRORS = "surrogatepass"


class Transcript(msgspec.Struct, frozen=True):
    """A session, or with ``subpath`` the transcript of one of its subagents."""

    project: str
    session: str
    subpath: str | None = None

    @classmethod
    def of(cls, key: Mapping[str, object]) -> Transcript:
        """The transcript that a key of the SDK means."""
        subpath = _text(key, "subpath") if "subpath" in key else None
        if subpath == "":
            text = "must not be empty; leave it out for the transcript of the session"
            raise Unstorable("subpath", text)
        return cls(_text(key, "project_key"), _text(key, "session_id"), subpath)

    @property
    def kind(self) -> str:
        """The kind of its thread."""
        return SESSION if self.subpath is None else SUBAGENT

    @property
    def thread(self) -> str:
        """The name of its thread, unique for each transcript."""
        name = sessions_prefix(self.project) + _escaped(self.session)
        return name if self.subpath is None else f"{name}/{_escaped(self.subpath, '/')}"


def sessions_prefix(project: str) -> str:
    """The beginning of the names of all threads of a project."""
    return f"{PREFIX}{_escaped(project)}/"


def last_part(thread: str, prefix: str) -> str:
    """The id or subpath that follows a prefix in the name of a thread."""
    return unquote(thread.removeprefix(prefix), errors=_ERRORS)


def _escaped(part: str, safe: str = "") -> str:
    return quote(part, safe=safe, errors=_ERRORS)


def _text(key: Mapping[str, object], name: str) -> str:
    found = key.get(name)
    if not isinstance(found, str):
        text = f"must be text, not {found!r}; pass a key as the SDK makes it"
        raise Unstorable(name, text)
    return found


def apart(entries: Sequence[TranscriptEntry], length: int) -> dict[str, list[Any]]:
    """Entries by the list they are appended to, after ``length`` messages."""
    messages: list[TranscriptEntry] = []
    notes: list[TranscriptEntry] = []
    for entry in entries:
        if is_message(entry):
            messages.append(entry)
        else:
            notes.append({"after": length + len(messages), "entry": entry})
    return {MESSAGES: messages, BOOKKEEPING: notes}


def together(state: Mapping[str, object]) -> list[TranscriptEntry]:
    """All entries of a state in their order."""
    messages = cast("list[TranscriptEntry]", state.get(MESSAGES, []))
    notes = cast("list[TranscriptEntry]", state.get(BOOKKEEPING, []))
    found: list[TranscriptEntry] = []
    done = 0
    for note in notes:
        found += [*messages[done : note["after"]], note["entry"]]
        done = max(done, note["after"])
    return found + messages[done:]


def is_message(entry: TranscriptEntry) -> bool:
    """True if people read an entry: what was said, and Claude's notices."""
    kind = entry.get("type")
    is_notice = kind == "system" and isinstance(entry.get("content"), str)
    return is_notice or (isinstance(kind, str) and kind in _SPEAKERS)
