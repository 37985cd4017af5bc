"""Forged lists, intents and links: no file outside of the folder is written."""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast import Corrupt, HoldfastError, Thread, archive
from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.files.draft import FilesDraft, PlannedFiles
from holdfast._values.file_listing import Level, Listing
from holdfast._values.files import FileEntry
from holdfast._values.manifest import FileLog
from holdfast._values.records import Segment
from holdfast._values.rope import Blocks
from holdfast._values.runs import count_segments
from holdfast._values.segment_use import as_runs, joined
from holdfast._values.stored_file import StoredFile
from holdfast.testing.trials.task import NotRun, Target, Task, Trials

FILE, LINK, FOLDER = stat.S_IFREG | 0o755, stat.S_IFLNK | 0o777, stat.S_IFDIR | 0o700
# A path, the mode, and the content or the target of a link.
Entry = tuple[bytes, int, bytes]


class ForgedFiles(FilesDraft):
    """The ``files`` of a save, with a list of files that is not checked.

    ``top`` gives the bytes of the list for the numbers of the segments with the
    contents.
    """

    def __init__(
        self, contents: Sequence[bytes], top: Callable[[Sequence[int]], bytes]
    ) -> None:
        self._forged, self._top = contents, top

    async def plan(
        self,
        context: Context,  # noqa: ARG002 - nothing is read
        parent: OpenedCheckpoint | None,
        blocks: Blocks,
    ) -> PlannedFiles:
        """The segments of the contents and of the list."""
        log = parent.manifest.files if parent else None
        following, segments = log.next_number if log else 0, list[Segment]()
        for data in (*self._forged, None):
            number = blocks.number(following)
            following = number + 1
            numbers = [segment.number for segment in segments]
            content = self._top(numbers) if data is None else data
            segments.append(Segment(number, content))
        top = segments[-1]
        added = as_runs(segment.number for segment in segments)
        # A list may refer to levels of the list before it.
        runs = joined([*(log.runs if log else ()), *added])
        size = sum(len(segment.data) for segment in segments)
        made = FileLog(runs, size, sha256(top.data).digest(), top.number, following)
        return PlannedFiles(made, Listing(), segments, count_segments(runs))


def forged(entries: Sequence[Entry], removed: Sequence[bytes] = ()) -> ForgedFiles:
    """Files with these paths, unchecked and in the given order."""

    def top(numbers: Sequence[int]) -> bytes:
        pairs = zip(entries, numbers, strict=True)
        files = tuple(
            StoredFile(path, mode, len(content), sha256(content).digest(), (number, 1))
            for (path, mode, content), number in pairs
        )
        return Level(files=files, removed=tuple(removed)).encoded()

    return ForgedFiles([content for _, _, content in entries], top)


if TYPE_CHECKING:
    from holdfast.workspace import Workspace

# How many lists are in one store.
BATCH = 50
NAMES = (b"a", b"b.py", b"src", b"..a", b"...", b"\xff", "é".encode(), b" ", b"a\\b")
WAYS_OUT = (b"..", b"../..", b".", b"", b"a\0b", b".holdfast", b".Holdfast")
REPOSITORIES = (b".git/hooks/post-checkout", b".GIT/config", b"src/.hg/hgrc")
PWNED = b"echo pwned\n"
Chance = random.Random
# Of ten trials, so many forge an intent, and so many plant a link.
INTENTS, LINKS = 2, 2
# A restore of `_link` renames and links so many times.
CHANGES = 8


def hostile_files(task: Task) -> Trials:
    """Restore forged lists, intents and folders; check the files outside of them."""
    try:
        import pathspec  # type: ignore[import-not-found, unused-ignore] # noqa: F401, PLC0415 - is it there
    except ImportError:
        raise NotRun("needs the extra workspace") from None
    wrong: list[str] = []
    with _variable("XDG_STATE_HOME", task.target.path("state")):
        from holdfast.workspace import _seal  # noqa: PLC0415 - Windows has none

        _seal.make_secret()
        for number, first in enumerate(range(0, task.count, BATCH)):
            count = min(BATCH, task.count - first)
            wrong += _tried(task.target.at(f"files{number}"), count, task.chance)
            task.done(first + count)
    return Trials(task.count, wrong)


def _tried(target: Target, count: int, chance: Chance) -> Iterator[str]:
    home = _Home(target.path("home"))
    kinds = [chance.randrange(10) for _ in range(count)]
    lists = [_hostile(chance, home) for kind in kinds if kind >= INTENTS + LINKS]
    yield from _lists(target, home, lists)
    for number, kind in enumerate(kinds):
        if kind < INTENTS:
            yield from _intent(home, number, chance)
        elif kind < INTENTS + LINKS:
            yield from _link(target, home, number, chance)
    target.discard("home")
    target.discard("given")


class _Home:
    """The home folder of a user, with folders that other people made."""

    def __init__(self, path: str) -> None:
        self.path = path
        os.mkdir(path)
        with open(os.path.join(path, "mine"), "w") as file:
            file.write("mine")

    def folder(self, name: str) -> str:
        """A new folder in it."""
        path = os.path.join(self.path, name)
        os.mkdir(path)
        return path

    def strangers(self) -> Iterator[str]:
        """The paths of files that neither the user nor a workspace made."""
        for place, folders, names in os.walk(self.path):
            if ".holdfast" in folders and place != self.path:
                folders.remove(".holdfast")
            yield from (os.path.join(place, name) for name in names if name != "mine")


# --- lists ----------------------------------------------------------------------------


def _hostile(chance: Chance, home: _Home) -> list[Entry]:
    """A list of files of which one leads out, in one of many ways."""
    files = {_path(chance): (FILE, PWNED) for _ in range(chance.randrange(4))}
    way = chance.randrange(6)
    if way == 0:  # below a link or a file
        place = _path(chance)
        files = {p: e for p, e in files.items() if not p.startswith(place)}
        kinds = ((LINK, os.fsencode(home.path)), (FILE, b""))
        files[place] = chance.choice(kinds)
        files[place + b"/" + _path(chance)] = (FILE, PWNED)
    elif way == 1:
        files[os.fsencode(home.path) + b"/.bashrc"] = (FILE, PWNED)
    elif way == 2:  # noqa: PLR2004 - one of six
        files[b"/".join([b"a"] * chance.randint(257, 400))] = (FILE, PWNED)
    else:
        parts = _path(chance).split(b"/")
        parts.insert(chance.randrange(len(parts) + 1), chance.choice(WAYS_OUT))
        files[b"/".join(parts)] = (chance.choice((FILE, LINK, FOLDER)), b"")
    entries = [(path, *files[path]) for path in sorted(files)]
    if way == 5:  # noqa: PLR2004 - one of six; a path comes twice
        entries += entries[:1]
    return entries


def _path(chance: Chance) -> bytes:
    return b"/".join(chance.choices(NAMES, k=chance.randint(1, 4)))


def _lists(target: Target, home: _Home, lists: list[list[Entry]]) -> Iterator[str]:
    from holdfast.workspace import Workspace  # noqa: PLC0415 - Windows has none

    names = [f"list {number}" for number in range(len(lists))]
    with target.open("given", durability="normal") as store:
        store.thread("repository").save(
            {}, files=forged([(path, FILE, PWNED) for path in sorted(REPOSITORIES)])
        )
        for name, entries in zip(names, lists, strict=True):
            store.thread(name).save({"n": 1}, files=forged(entries))
    with target.open("given", cache_size=0) as store:
        found = [str(problem) for problem in store.verify().problems]
        workspace = Workspace(home.folder("project"))
        workspace.restore(store.thread("repository"), "@", force=True)
        for name, entries in zip(names, lists, strict=True):
            about = f"{entries!r:.200}"
            if not any(repr(name) in text for text in found):
                yield f"verify finds nothing wrong with {about}"
            yield from _read(store.thread(name), workspace, about)
            yield from (f"{path} was written by {about}" for path in home.strangers())
        given = target.path("given.hfa")
        store.export_to(given, threads=names[:1])
        if names and not _refuses(lambda: archive.check(given)):
            yield f"an archive was taken with {lists[0]!r:.200}"


def _read(thread: Thread, workspace: Workspace, about: str) -> Iterator[str]:
    if not _refuses(thread.files):
        yield f"a list was read: {about}"
    if not _refuses(lambda: workspace.restore(thread, "@", force=True)):
        yield f"a list was restored: {about}"


def _refuses(call: Callable[[], object]) -> bool:
    try:
        call()
    except Corrupt:
        return True
    except HoldfastError:
        return False
    return False


# --- intents --------------------------------------------------------------------------


def _intent(home: _Home, number: int, chance: Chance) -> Iterator[str]:
    """Open a folder with a restore under way that another person began."""
    from holdfast.workspace import Workspace  # noqa: PLC0415 - Windows has none

    folder = home.folder(f"cloned{number}")
    state = os.path.join(folder, ".holdfast", "state")
    with _variable("XDG_STATE_HOME", state):
        _forge(folder, chance.choice((b"../.bashrc", b"../mine", b"inside")))
    try:
        Workspace(folder)
    except HoldfastError:
        pass
    else:
        yield f"the restore of another person was finished in {folder}"
    yield from (f"{path} was written by an intent" for path in home.strangers())
    if not os.path.exists(os.path.join(home.path, "mine")):
        yield "a file of the user was removed by an intent"


def _forge(folder: str, path: bytes) -> None:
    from holdfast.workspace import _descriptors, _intent, _seal  # noqa: PLC0415
    from holdfast.workspace._plan import FileChange  # noqa: PLC0415

    stage = os.path.join(folder, ".holdfast", _intent.STAGE)
    for name in (_intent.NEW, _intent.OLD):
        os.makedirs(os.path.join(stage, name))
    with open(os.path.join(stage, _intent.NEW, "0"), "wb") as file:
        file.write(PWNED)
    entry = FileEntry(path, FILE, len(PWNED), sha256(PWNED).digest())
    step = _intent.Step(FileChange(path, None, entry), None, None)
    _seal.make_secret()
    own = os.open(os.path.dirname(stage), _descriptors.FOLDER)
    try:
        data = _intent.encode(own, _intent.Intent((step,), (), ()))
    finally:
        os.close(own)
    with open(os.path.join(stage, _intent.INTENT), "wb") as file:
        file.write(data)


# --- links ----------------------------------------------------------------------------


def _link(target: Target, home: _Home, number: int, chance: Chance) -> Iterator[str]:
    """Turn a folder into a link to another one while its files are restored."""
    from holdfast.workspace import Workspace  # noqa: PLC0415 - Windows has none
    from holdfast.workspace._disk import Disk  # noqa: PLC0415

    folder, outside = home.folder(f"linked{number}"), home.folder(f"outside{number}")
    left, place = chance.randint(1, CHANGES), os.path.join(folder, "src")

    class Planting(Disk):
        def _plant(self) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.rename(place, place + " moved")
                os.symlink(outside, place)

        def link(self, at: int, name: bytes | str, to: int, new: bytes | str) -> None:
            self._plant()
            super().link(at, name, to, new)

        def rename(self, at: int, name: bytes | str, to: int, new: bytes | str) -> None:
            self._plant()
            super().rename(at, name, to, new)

    workspace = Workspace(folder)
    with target.open("given", durability="normal") as store:
        thread = store.thread(f"linked {number}")
        _write(place, "one")
        first = thread.save({"n": 1}, files=workspace)
        os.remove(os.path.join(place, "one"))
        _write(place, "two")
        thread.save({"n": 2}, files=workspace)
        _write(outside, "one")
        _write(outside, "two")
        # Tests replace the disk in the same way.
        workspace._disk = Planting()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        with suppress(HoldfastError):
            workspace.restore(thread, first)
    found = {name: _text(os.path.join(outside, name)) for name in os.listdir(outside)}
    if found != {"same": "two", "one": "one", "two": "two"}:
        yield f"files were changed through a link: {found}"
    _remove(folder)
    _remove(outside)


def _write(folder: str, text: str) -> None:
    os.makedirs(folder, exist_ok=True)
    for name in ("same", text):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


def _text(path: str) -> str:
    with open(path) as file:
        return file.read()


def _remove(folder: str) -> None:
    import shutil  # noqa: PLC0415 - it takes long to import

    shutil.rmtree(folder)


@contextmanager
def _variable(name: str, value: str) -> Generator[None]:
    """Set a variable of the environment for a while; a row has its own process."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
