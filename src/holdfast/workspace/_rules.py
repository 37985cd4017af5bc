"""The rules for the files that belong to a workspace, as in ``.gitignore``.

The rules of a program come first, then those of the deepest folder, then those of the
folders above it, then the defaults; the first that knows the path decides.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast._values.files import OWN_FOLDER
from holdfast.workspace._patterns import matcher

if TYPE_CHECKING:  # an extra
    from pathspec import GitIgnoreSpec

# The files with rules, in the order in which later ones win.
RULE_FILES = (".gitignore", ".holdfastignore")
DEFAULTS = (
    ".git",
    "node_modules/",
    ".venv/",
    "venv/",
    "__pycache__/",
    "*.pyc",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".cache/",
    ".tox/",
    ".nox/",
    ".DS_Store",
)
_HEADER = "# "
_FROM_DEFAULTS, _FROM_PROGRAM = "defaults", "ignore="


def rule_lines(text: bytes) -> tuple[str, ...]:
    """The rules in a file, without comments and empty lines."""
    lines = text.decode("utf-8", "replace").splitlines()
    return tuple(line for line in lines if line.strip() and line[0] != "#")


class Rules:
    """The rules for one folder: its own, and through ``above`` those of its parents.

    ``key`` is equal for equal rules. ``place`` is the folder, with a slash at its end.
    """

    def __init__(
        self, lines: tuple[str, ...], place: str = "", above: Rules | None = None
    ) -> None:
        self.lines = lines
        self.place = place
        self.above = above
        text = "\n".join(lines).encode()
        start: bytes = above.key if above else b""
        where = os.fsencode(place)
        self.key: bytes = hashlib.sha256(start + where + b"\0" + text).digest()[:16]
        self._matcher: GitIgnoreSpec | None = None

    def verdict(self, path: str) -> bool | None:
        """True if these rules alone leave a path out; ``None`` if they do not know."""
        found = self._matcher
        if found is None:
            found = self._matcher = matcher(self.lines)
        return found.check_file(path[len(self.place) :]).include

    def levels(self) -> Iterator[Rules]:
        """These rules, then those of the folders above."""
        level: Rules | None = self
        while level is not None:
            yield level
            level = level.above


class RuleBook:
    """The rules of a program and the defaults, and what they make of a path."""

    def __init__(
        self, ignore: Iterable[str] = (), defaults: Iterable[str] = DEFAULTS
    ) -> None:
        self.program = Rules(tuple(ignore))
        self.top = Rules(tuple(defaults), above=None)
        self.key = self.program.key

    def ignores(self, path: str, rules: Rules) -> bool:
        """True if a path is left out; that of a folder has a slash at its end."""
        for level in (self.program, *rules.levels()):
            if level.lines and (verdict := level.verdict(path)) is not None:
                return verdict
        return False

    def takes_in(self, path: str) -> bool:
        """True if the program itself says that a path is not left out."""
        return bool(self.program.lines) and self.program.verdict(path) is False

    def in_force(self, found: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
        """All rules as text for a checkpoint; ``found`` are those of rule files."""
        sources = {_FROM_DEFAULTS: self.top.lines, _FROM_PROGRAM: self.program.lines}
        every = [*sources.items(), *sorted(found.items())]
        return tuple(
            line
            for source, lines in every
            if lines
            for line in (_HEADER + source, *lines)
        )


def recorded_rules(lines: Iterable[str]) -> RecordedRules:
    """The rules that a checkpoint recorded."""
    sources: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        if line.startswith(_HEADER):
            current = sources.setdefault(line.removeprefix(_HEADER), [])
        else:
            current.append(line)
    return RecordedRules({source: tuple(rules) for source, rules in sources.items()})


class RecordedRules:
    """The rules of a checkpoint, asked about single paths."""

    def __init__(self, sources: dict[str, tuple[str, ...]]) -> None:
        self._book = RuleBook(
            sources.pop(_FROM_PROGRAM, ()), sources.pop(_FROM_DEFAULTS, ())
        )
        self._folders: dict[str, tuple[str, ...]] = {}
        for source in sorted(sources):
            place = source[: source.rfind("/") + 1]
            self._folders[place] = self._folders.get(place, ()) + sources[source]

    def ignores(self, path: str) -> bool:
        """True if a file, or a folder that it is in, was left out."""
        rules, parts = self._at("", self._book.top), path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth]) + "/"
            if parts[depth - 1] == OWN_FOLDER or self._book.ignores(folder, rules):
                return True
            rules = self._at(folder, rules)
        return self._book.ignores(path, rules)

    def _at(self, place: str, above: Rules) -> Rules:
        lines = self._folders.get(place)
        return Rules(lines, place, above) if lines else above
