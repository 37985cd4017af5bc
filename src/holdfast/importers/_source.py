"""What the reader of a foreign format hands over: threads and checkpoints to be.

Readers only look at files. They say what they found, what they had to guess and what
they could not read; one writer puts it into the store.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from holdfast._values.records import checked_name
from holdfast._values.reference import checked_id
from holdfast.errors import Unstorable

# Leaves room for what the store puts before a name.
LONGEST_ID = 400


class Damaged(Exception):
    """A part of the source that cannot be taken over; the text says why."""


class Finding(msgspec.Struct, frozen=True):
    """A file of the source, or something in it, and what is to be said of it."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A thread to be, named as the source names it."""

    kind: str
    id: str
    owner: str | None = None
    agent: str | None = None


class Save(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint to be; ``state`` reads the state when its turn comes.

    ``digest`` stands for all the source says of it, ``origin`` is what has no other
    home, ``messages`` how many there are in the state. Without an ``id`` it is a
    version of something that may change again: its id is made of the digest, and one
    that repeats the version before it is left out.
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
    is_version: bool = False


def later(save: Save, again: Callable[[], Save]) -> Save:
    """The same without its state in memory: it is read again when its turn comes."""
    digest = save.digest

    def state() -> object:
        now = again()
        if now.digest != digest:
            raise Damaged("changed while it was being imported; import it again")
        return now.state()

    return msgspec.structs.replace(save, state=state)


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's checkpoint to be: saves of the agent and of its conversations.

    ``holds`` are the ids that `Reading.put_bundle` gave them.
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
    """Everything that was found in a source, good or bad."""

    def __init__(self) -> None:
        self.lines: dict[Line, list[Save]] = {}
        self.bundles: list[Bundle] = []
        # What there is by the source's own names, to be compared with it.
        self.found: dict[str, int] = {}
        # A dict for its order and for finding what was said before.
        self.inferred: dict[str, None] = {}
        self.damaged: list[Finding] = []
        self.ignored: list[Finding] = []
        # What has to stay open until the last state was read.
        self.resources = ExitStack()
        self._digests: dict[tuple[Line | str, str], str] = {}

    def count(self, name: str, number: int = 1) -> None:
        """Say that the source holds so many more of something."""
        self.found[name] = self.found.get(name, 0) + number

    def infer(self, note: str) -> None:
        """Say, once, what had to be guessed."""
        self.inferred[note] = None

    def put(self, line: Line, save: Save) -> str | None:
        """Add a checkpoint to the end of a thread and give its id.

        ``None`` if the thread has another of the same id, which is reported.
        """
        saves = self.lines.setdefault(line, [])
        if save.id is None and saves and saves[-1].digest == save.digest:
            return saves[-1].id
        id_ = self._made_id(line, save) if save.id is None else storable_id(save.id)
        if self._is_double(save, line, id_):
            return None
        saves.append(_storable(save, id_))
        return id_

    def put_bundle(self, bundle: Bundle, saves: dict[Line, Save]) -> None:
        """Add an agent's checkpoint and the saves it holds, the agent's own first.

        Nothing is added if there is another of the same id, which is reported.
        """
        if not self._is_double(bundle, bundle.agent, bundle.id):
            holds = {line: self.put(line, save) for line, save in saves.items()}
            self.bundles.append(msgspec.structs.replace(bundle, holds=holds))

    def _made_id(self, line: Line, save: Save) -> str:
        """An id that is the same whenever the source is read again."""
        earlier = sum(other.digest == save.digest for other in self.lines[line])
        return f"{save.digest}-{earlier + 1}" if earlier else save.digest

    def _is_double(self, save: Save | Bundle, whose: Line | str, id_: str) -> bool:
        if (whose, id_) not in self._digests:
            self._digests[whose, id_] = save.digest
            return False
        if self._digests[whose, id_] == save.digest:
            text = f"holds checkpoint {save.id!r} once more; it was taken over once"
            self.ignored.append(Finding(save.path, text))
        else:
            text = f"holds another checkpoint with the id {save.id!r}; it was left out"
            self.damaged.append(Finding(save.path, text))
        return True

    @contextmanager
    def attempt(self, path: str, part: str = "") -> Generator[None]:
        """Report what turns out to be damaged inside, and go on behind it."""
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
        self.damaged.append(Finding(path, f"{part}: {reason}" if part else reason))


class Reader(Protocol):
    """A foreign format: how to recognise it and how to read it.

    A package offers one, an object or a module, as a ``holdfast.importers`` entry point
    with the format's name.
    """

    def recognises(self, path: str) -> bool:
        """Whether a file or a folder looks like this format; never raises."""
        ...

    def read(self, path: str) -> Reading:
        """All there is; what is damaged is reported in it and not raised."""
        ...


def _storable(save: Save, id_: str) -> Save:
    """A save with marks that the store takes; others stay in its origin."""
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
    """A name of the source as ours, or a made one if the store does not take it."""
    try:
        return checked_name(name, longest=LONGEST_ID)
    except Unstorable:
        return _made_name(name)


def storable_id(id_: str) -> str:
    """A checkpoint's id of the source as ours, or a made one."""
    try:
        return checked_id(id_)
    except Unstorable:
        return _made_name(id_)


def _made_name(name: str) -> str:
    return "~" + sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
