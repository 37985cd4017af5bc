"""The result of a foreign format's reader: the threads and checkpoints to save.

Readers only read files. They report what they found, what they had to guess and what
they could not read. The writer in `_write` puts all of it into the store.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from holdfast._values.records import checked_name
from holdfast._values.reference import checked_id
from holdfast.errors import Unstorable

# Leaves room for the prefix that the store puts before a name.
LONGEST_ID = 400


class Damaged(Exception):
    """A part of the source that cannot be imported; the text says why."""


class Finding(msgspec.Struct, frozen=True):
    """A remark about a file of the source, or about a part of it."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A thread to save, with the names that the source uses."""

    kind: str
    id: str
    owner: str | None = None
    agent: str | None = None


class Save(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint to save; ``state`` is called when the writer needs the state.

    ``digest`` covers everything the source says about it, ``origin`` holds the fields
    that have no place of their own, ``messages`` is the number of messages in the
    state, ``step`` the number of the save in the source. Without an ``id`` the save is
    a version of something that may change again: its id is made from the digest, and a
    version equal to the one before is left out.
    """

    at: int
    path: str
    digest: str
    state: Callable[[], object]
    id: str | None = None
    label: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    origin: dict[str, Any] = {}
    messages: int = 0
    step: int | None = None
    is_version: bool = False


def later(save: Save, again: Callable[[], Save]) -> Save:
    """The same save without its state in memory: ``again`` reads it when needed."""
    digest = save.digest

    def state() -> object:
        now = again()
        if now.digest != digest:
            raise Damaged("changed while it was being imported; import it again")
        return now.state()

    return msgspec.structs.replace(save, state=state)


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint of an agent to save: the agent's save and its conversations'.

    ``holds`` are the ids of these saves; `Reading.put_bundle` sets them.
    """

    agent: str
    id: str
    at: int
    path: str
    digest: str
    holds: dict[Line, str | None] = {}
    kind: str = "manual"
    name: str | None = None
    description: str | None = None
    origin: dict[str, Any] = {}


class Reading:
    """The contents of a source, and the damage found in it."""

    def __init__(self) -> None:
        self.lines: dict[Line, list[Save]] = {}
        self.bundles: list[Bundle] = []
        # Counts by the source's own names, so that a user can compare.
        self.found: dict[str, int] = {}
        # A dict: keeps the order, and each note only once.
        self.inferred: dict[str, None] = {}
        self.damaged: list[Finding] = []
        self.ignored: list[Finding] = []
        # What has to stay open until the last state is read.
        self.resources = ExitStack()
        self._digests: dict[tuple[Line | str, str], str] = {}
        self._attempted: set[str] = set()

    def count(self, name: str, number: int = 1) -> None:
        """Add to the count of something that the source holds."""
        self.found[name] = self.found.get(name, 0) + number

    def paths(self) -> set[str]:
        """The files without damage, and those of which something is to be saved."""
        whole = self._attempted - {finding.path for finding in self.damaged}
        saves = {save.path for saves in self.lines.values() for save in saves}
        return whole | saves | {bundle.path for bundle in self.bundles}

    def infer(self, note: str) -> None:
        """Note, once, what had to be guessed."""
        self.inferred[note] = None

    def ignore(self, path: str, reason: str) -> None:
        """Note a file that holds nothing to import, and why."""
        self.ignored.append(Finding(path, reason))

    def put(self, line: Line, save: Save) -> str | None:
        """Add a checkpoint to the end of a thread; returns its id.

        ``None``, and a report, if the thread already has a checkpoint of that id.
        """
        saves = self.lines.setdefault(line, [])
        if save.id is None and saves and saves[-1].digest == save.digest:
            return saves[-1].id
        id_ = self._made_id(line, save) if save.id is None else storable_id(save.id)
        if self._is_double(save, line, id_):
            return None
        saves.append(_storable(save, id_))
        return id_

    def put_files(self, found: Iterable[tuple[Line, Save]]) -> None:
        """Add what files hold; of several of one thread the newest comes last.

        Of equal age, that is the one with the id as its name.
        """
        saves: dict[Line, list[Save]] = {}
        for line, save in found:
            saves.setdefault(line, []).append(save)
        for line, several in saves.items():
            name = f"{line.id}.json"
            several.sort(key=lambda s: (s.at, os.path.basename(s.path) == name))
            for save in several:
                self.put(line, save)
            if len(several) > 1:
                *older, newest = (save.path for save in several)
                self.infer(
                    f"{line.kind} {line.id!r} is in {len(several)} files; it is as the"
                    f" newest has it, {newest}, and {', '.join(older)} came before it"
                )

    def put_bundle(self, bundle: Bundle, saves: dict[Line, Save]) -> None:
        """Add an agent's checkpoint and the saves it holds, the agent's own first.

        If there is already one of that id, nothing is added and it is reported.
        """
        if not self._is_double(bundle, bundle.agent, bundle.id):
            holds = {line: self.put(line, save) for line, save in saves.items()}
            self.bundles.append(msgspec.structs.replace(bundle, holds=holds))

    def _made_id(self, line: Line, save: Save) -> str:
        """An id that is the same each time the source is read."""
        earlier = sum(other.digest == save.digest for other in self.lines[line])
        return f"{save.digest}-{earlier + 1}" if earlier else save.digest

    def _is_double(self, save: Save | Bundle, owner: Line | str, id_: str) -> bool:
        if (owner, id_) not in self._digests:
            self._digests[owner, id_] = save.digest
            return False
        if self._digests[owner, id_] == save.digest:
            text = f"holds checkpoint {save.id!r} once more; it was taken over once"
            self.ignore(save.path, text)
        else:
            text = f"holds another checkpoint with the id {save.id!r}; it was left out"
            self.damaged.append(Finding(save.path, text))
        return True

    @contextmanager
    def attempt(self, path: str, part: str = "") -> Generator[None]:
        """Report damage that is raised inside the block, and continue after it."""
        try:
            yield
        except Damaged as damage:
            reason = str(damage)
        except Unstorable as refusal:
            reason = f"cannot be kept: {refusal}"
        except RecursionError:
            reason = "is nested too deeply to be read"
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
        else:
            return
        finally:
            self._attempted.add(path)
        self.damaged.append(Finding(path, f"{part}: {reason}" if part else reason))


class Reader(Protocol):
    """Recognises and reads a foreign format.

    A package offers a reader, an object or a module, as an entry point of the group
    ``holdfast.importers``; the name of the entry point is the name of the format.
    """

    def recognises(self, path: str) -> bool:
        """True if a file or a folder looks like this format; never raises."""
        ...

    def read(self, path: str) -> Reading:
        """Read all of it; damage is reported in the result and not raised."""
        ...


def _storable(save: Save, id_: str) -> Save:
    """A save with id, label and tags that the store accepts; others go to origin."""
    label = save.label if save.label is not None and _is_mark(save.label) else None
    tags = tuple(dict.fromkeys(tag for tag in save.tags if _is_mark(tag)))
    changed: dict[str, Any] = {
        name: was
        for name, was, now in (
            ("id", save.id, id_),
            ("label", save.label, label),
            ("tags", list(save.tags), list(tags)),
        )
        if was not in (None, now)
    }
    return msgspec.structs.replace(
        save,
        id=id_,
        label=label,
        tags=tags,
        origin={**save.origin, **changed},
        is_version=save.id is None,
    )


def _is_mark(mark: str) -> bool:
    try:
        return bool(checked_name(mark))
    except Unstorable:
        return False


def storable_name(name: str) -> str:
    """A name of the source, or a digest of it if the store does not accept it."""
    try:
        return checked_name(name, longest=LONGEST_ID)
    except Unstorable:
        return _made_name(name)


def storable_id(id_: str) -> str:
    """A checkpoint's id of the source, or a digest if the store does not accept it."""
    try:
        return checked_id(id_)
    except Unstorable:
        return _made_name(id_)


def _made_name(name: str) -> str:
    return "~" + sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
