"""Turns of a coding session: what a store and git add for what changed in the files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import holdfast
from benchmarks.contest.units import volume
from benchmarks.measure import Bench, disk_size
from benchmarks.report import Row
from benchmarks.repository import committer

WORDS = ("return", "self", "value", "index", "for", "not", "raise", "name", "state")
LINES = 150
NEW_FILES = 0.2  # a turn


def coding_session(bench: Bench) -> None:
    """A hundred turns, each with a few edits, in a folder of five hundred files."""
    turns, files = bench.amount(100, 20), bench.amount(500, 100)
    with bench.place() as place:
        session = Session(Path(place, "project"), files)
        added = _added(Path(place), session, turns)
    text = f"{turns} turns of a coding session in {files} files: bytes added"
    for name in ("store", "compressed store"):
        shown = f"{volume(added[name])}; git {volume(added['git'])}"
        ratio = added[name] / added["git"]
        bench.rows.append(Row(f"{text} by a {name}, against git", shown, ratio))
    ours, lines, whole = added["store"], session.lines, session.whole
    shown = f"{volume(ours)}; {volume(lines)} of lines, in files of {volume(whole)}"
    row = Row(f"{text}, against the files that changed", shown, ours / whole)
    bench.rows.append(row)


def _added(place: Path, session: Session, turns: int) -> dict[str, int]:
    """What the turns add to each, in bytes; what is there before is not counted."""
    commit = committer(session.folder)  # which has committed all
    savers = [
        _saver(place / "plain.db", session.folder, compress=False),
        _saver(place / "dense.db", session.folder, compress=True),
    ]
    sizes: dict[str, Callable[[], int]] = {
        "store": lambda: disk_size(str(place / "plain.db")),
        "compressed store": lambda: disk_size(str(place / "dense.db")),
        "git": lambda: _size_of(place / "repository" / "objects"),
    }
    for save in savers:
        save(0)
    before = {name: size() for name, size in sizes.items()}
    for turn in range(1, turns + 1):
        session.turn()
        for save in savers:
            save(turn)
        commit()
    return {name: size() - before[name] for name, size in sizes.items()}


def _saver(path: Path, folder: Path, *, compress: bool) -> Callable[[int], None]:
    """Saves the folder, and closes the store: only then all is in its file."""
    workspace = holdfast.Workspace(folder)

    def save(turn: int) -> None:
        with holdfast.open(path, compress=compress) as store:
            store.thread("coder").save({"turn": turn}, files=workspace)

    return save


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class Session:
    """An agent that edits files; counts the lines it writes, and the files."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder = folder
        self._chance = random.Random(7)
        names = [f"src/m{number % 20}/f{number}.py" for number in range(files)]
        self._texts = {name: self._lines(LINES) for name in names}
        for name in names:
            self._write(name)
        self.lines = self.whole = 0

    def turn(self) -> None:
        """Edit a few files, and make one now and then."""
        for _ in range(self._chance.randint(1, 3)):
            name = self._chance.choice(list(self._texts))
            new, text = self._lines(self._chance.randint(1, 8)), self._texts[name]
            place = self._chance.randrange(len(text))
            text[place : place + self._chance.randint(0, 5)] = new
            self._count(name, new)
        if self._chance.random() < NEW_FILES:
            name = f"src/new/f{len(self._texts)}.py"
            self._texts[name] = self._lines(self._chance.randint(20, LINES))
            self._count(name, self._texts[name])

    def _lines(self, count: int) -> list[str]:
        words = [self._chance.choices(WORDS, k=6) for _ in range(count)]
        return [f"{' '.join(each)} {self._chance.getrandbits(32)}\n" for each in words]

    def _count(self, name: str, new: list[str]) -> None:
        self.lines += len("".join(new))
        self.whole += self._write(name)

    def _write(self, name: str) -> int:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.write_text("".join(self._texts[name]))
