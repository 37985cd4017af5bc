"""SQLite connections: opening, settings, format check, and what their errors mean.

The database file is never opened by anything but SQLite: closing any other descriptor
of it would drop the POSIX locks of the whole process.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from array import array
from collections.abc import Callable, Generator
from typing import Any

import apsw

from holdfast._values import os_errors
from holdfast.backends._sql.statements import text_of
from holdfast.backends.sqlite._acknowledged import IDENTITY, Durability
from holdfast.backends.sqlite._packed_manifests import pack_manifest, unpack_manifest
from holdfast.backends.sqlite._rows import row_checksum
from holdfast.backends.sqlite._statements import rows
from holdfast.errors import (
    Busy,
    Closed,
    Corrupt,
    FormatMismatch,
    HoldfastError,
    Unstorable,
    Unsupported,
)

APPLICATION_ID = 0x484F4C44  # "HOLD"
MIGRATIONS = (
    "0001_initial.sql",
    "0002_blocks.sql",
    "0003_row_checksums.sql",
    "0004_graves.sql",
    "0005_packed_manifests.sql",
    "0006_files.sql",
    "0007_writers.sql",
)
FORMAT = len(MIGRATIONS)
# The function that the triggers of a file name, by its format; only connections that
# may write have it, and it is never called.
WRITER = "holdfast_format_7"
NO_WRITER = re.compile(r"no such function: holdfast_format_(\d+)")
# The functions that our statements call, with the columns that they name.
_FUNCTIONS: dict[str, Callable[..., bytes | int]] = {
    "row_checksum": row_checksum,
    "pack_manifest": pack_manifest,
    "unpack_manifest": unpack_manifest,
}
CHECKSUM_BYTES = 8
# The setting of a file that was made with a checksum in every page.
GUARDED = "page checksums"
LARGEST_IDLE_WAL = 64 << 20
SWITCH_TIMEOUT = 10.0
MEMORY = ":memory:"
LONGEST_TIMEOUT = (1 << 31) - 1  # milliseconds

_OF_THE_MOMENT = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.ConnectionClosedError,
    apsw.FullError,
    apsw.InterruptError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.PermissionsError,
    apsw.ReadOnlyError,
)
_OF_THE_MOMENT_TOO = frozenset({
    apsw.SQLITE_IOERR_ACCESS,
    apsw.SQLITE_IOERR_LOCK,
    apsw.SQLITE_IOERR_NOMEM,
    apsw.SQLITE_IOERR_RDLOCK,
    apsw.SQLITE_IOERR_SHMLOCK,
    apsw.SQLITE_IOERR_SHMMAP,
    apsw.SQLITE_IOERR_SHMOPEN,
    apsw.SQLITE_IOERR_SHMSIZE,
})  # fmt: skip

# The other VFSs that a process has from the start.
_EXTENSIONS = {"cksmvfs", "memdb"}
_READ_ONLY = apsw.SQLITE_OPEN_READONLY
_READ_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class translated:  # noqa: N801 - reads as a statement: `with translated(path):`
    """Turns SQLite's errors into ours, in this one place."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, apsw.Error):
            raise translation(error, self.path) from error
        if isinstance(error, OSError) and error.errno in os_errors.NO_ROOM:
            raise os_errors.no_room(error) from error


def translation(error: apsw.Error, path: str) -> HoldfastError:
    """Our error for one of SQLite's."""
    detail = str(error)
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Busy(f"{path} is locked by another writer; retry, or raise busy_timeout")
    if isinstance(error, apsw.FullError):
        # Not "nothing was saved": a copy makes several changes.
        text = f"no space left for {path}; this change was not saved"
        return HoldfastError(f"{text}; free some space and retry", code="disk_full")
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError):
        return Unsupported(
            f"{path} cannot be written: {detail}; open it where you may write",
            code="read_only",
        )
    if isinstance(error, apsw.NotADBError):
        return FormatMismatch(
            f"{path} is not a Holdfast store; it was left as it is. If it was one, save"
            " the rest with holdfast.salvage(path, to)"
        )
    if isinstance(error, apsw.ConnectionClosedError):
        return Closed()
    return _damage(error, path, detail)


def _damage(error: apsw.Error, path: str, detail: str) -> HoldfastError:
    newer = NO_WRITER.search(detail)
    if newer is not None:
        return FormatMismatch(
            f"a newer version of Holdfast has brought {path} to format {newer[1]} while"
            " it was open here; this change was not saved: start this program again"
            " with the newer version"
        )
    broken_page = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA
    if broken_page or isinstance(error, apsw.CorruptError):
        return Corrupt(path, detail)
    if isinstance(error, apsw.TooBigError):
        why = "is more than SQLite holds in one row; divide it. Nothing of it was saved"
        return Unstorable(f"what was to be saved in {path}", why)
    if isinstance(error, apsw.CantOpenError):
        text = f"{path} cannot be opened; check that it is a file you may read"
        if not os_errors.can_open(3):  # the database, its log and shared memory
            text = (
                f"{path} cannot be opened: too many open files; {os_errors.MAKE_ROOM}"
            )
        return HoldfastError(text, code="cannot_open")
    return HoldfastError(
        f"{path}: {detail}; retry, or look at the disk", code="io_error"
    )


def tells_of_damage(error: apsw.Error) -> bool:
    """True if the error of a read is about the stored bytes, not about the moment."""
    return not (
        isinstance(error, _OF_THE_MOMENT)
        or getattr(error, "extendedresult", 0) in _OF_THE_MOMENT_TOO
    )


def is_bad_page(error: Corrupt) -> bool:
    """True if the error says that the checksum of a page does not fit."""
    found = getattr(error.__cause__, "extendedresult", 0)
    return bool(found == apsw.SQLITE_IOERR_DATA)


def ignore_page_checksums(db: apsw.Connection) -> None:
    """Read pages whatever their checksums say."""
    db.execute("pragma checksum_verification = 0")


@contextlib.contextmanager
def unchecked_pages(db: apsw.Connection) -> Generator[None]:
    """For a while, read pages whatever their checksums say."""
    ignore_page_checksums(db)
    try:
        yield
    finally:
        db.execute("pragma checksum_verification = 1")


def leave_log(db: apsw.Connection) -> None:
    """Close a connection later without copying the log into the file."""
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def page_checksums() -> str | None:
    """The VFS that keeps a checksum in every page, if this SQLite build has it."""
    if "cksmvfs" not in apsw.vfs_names():
        extension = _checksum_extension()
        if extension is None:
            return None
        default = apsw.vfs_names()[0]
        loader = apsw.Connection(":memory:")
        loader.enable_load_extension(True)
        loader.load_extension(extension)
        loader.close()
        # Loading makes it the default of the process, which other code did not ask for.
        apsw.set_default_vfs(default)
    return "cksmvfs"


def _checksum_extension() -> str | None:
    """The file of the extension in the wheel of apsw.

    `apsw.sqlite_extra` finds it too, and takes as long to load as apsw four times.
    """
    folder = os.path.join(os.path.dirname(apsw.__file__), "sqlite_extra_binaries")
    for ending in (".so", ".dll", ".dylib"):
        found = os.path.join(folder, f"cksumvfs{ending}")
        if os.path.exists(found):
            return found
    return None


def plain_vfs() -> str:
    """The VFS of the operating system, which knows nothing of page checksums."""
    return next(name for name in apsw.vfs_names() if name not in _EXTENSIONS)


def can_search() -> bool:
    """True if this build of SQLite has FTS5."""
    return "ENABLE_FTS5" in apsw.compile_options


def connect(
    path: str, *, read_only: bool, busy_timeout: float, vfs: str | None
) -> apsw.Connection:
    """A connection to a file or, for ":memory:", to a new private database."""
    flags = _READ_ONLY if read_only else _READ_WRITE
    name = path
    if read_only and _is_sealed(path):
        from urllib.parse import quote  # noqa: PLC0415 - loads ipaddress

        name = f"file:{quote(os.path.abspath(path))}?immutable=1"
        flags |= apsw.SQLITE_OPEN_URI
    db = apsw.Connection(name, flags=flags, vfs=vfs, statementcachesize=200)
    db.set_busy_timeout(min(int(busy_timeout * 1000), LONGEST_TIMEOUT))
    # One plan for all values: otherwise SQLite plans most conditions on a thread again
    # for each name or number, which takes longer than the statement.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    for called, function in _FUNCTIONS.items():
        db.create_scalar_function(called, function, deterministic=True)
    # Some builds let a schema call only functions that are marked as harmless.
    harmless = apsw.SQLITE_INNOCUOUS
    db.create_scalar_function(WRITER, _nothing, 0, flags=harmless)
    return db


def _nothing(*_: object) -> None:
    """The function that triggers name: it has to exist, and is never called."""


def remove_empty_log(path: str, vfs: str | None) -> None:
    """Remove the empty ``-wal`` and ``-shm`` that a reader has left beside a file.

    SQLite removes them with the last connection that may write, if no other process
    uses the file. A log with content is left alone: the next writer judges it.
    """
    log = f"{path}-wal"
    if path == MEMORY or not os.path.exists(log) or file_size(log) > 0:
        return
    with contextlib.suppress(apsw.Error):
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
        with contextlib.closing(db):
            db.execute("pragma schema_version").fetchall()


def _is_sealed(path: str) -> bool:
    """True if a file is complete and on a file system that is mounted read-only.

    There SQLite could not make the shared memory that it wants beside the file.
    """
    if path == MEMORY or not hasattr(os, "statvfs") or file_size(f"{path}-wal") > 0:
        return False
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


class snapshot:  # noqa: N801 - reads as a statement: `with snapshot(db):`
    """One view of the file for several statements."""

    __slots__ = ("db",)

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def __enter__(self) -> None:
        # Not apsw's own: after a read error there is nothing left to roll back.
        self.db.execute("begin")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self.db.in_transaction:
            self.db.execute("rollback")


class transaction:  # noqa: N801 - reads as a statement: `with transaction(db):`
    """A write transaction: whole, or rolled back whatever happens inside.

    Gives a cursor for its statements: to make one for each takes a twelfth of the time
    of those of a save.
    """

    __slots__ = ("cursor", "db")

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.cursor = db.cursor()

    def __enter__(self) -> apsw.Cursor:
        try:
            self.cursor.execute("begin immediate")
        except BaseException:
            # An interrupt may arrive when it has begun already.
            self.roll_back()
            raise
        return self.cursor

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self.cursor.execute("commit")
        finally:
            if self.db.in_transaction:
                self.roll_back()

    def roll_back(self) -> None:
        """Undo what is not committed."""
        # After a commit, and after some of its failures, there is nothing to undo.
        if self.db.in_transaction:
            self.db.execute("rollback")


def prepare(
    db: apsw.Connection, path: str, durability: Durability, page_size: int
) -> None:
    """Make a writing connection ready: check, create or migrate, and set it up."""
    found = identify(db, path)
    if path != MEMORY:
        if found == 0:
            db.execute(f"pragma page_size = {page_size}")
            _claim(db, path)
        else:
            _refuse_unchecked(db, path)
        _use_wal(db, path)
    if found < FORMAT:
        _migrate(db)
    check_guarded(db, path)
    _set_up(db, path, durability)


def identify(db: apsw.Connection, path: str) -> int:
    """The format number of a store, 0 for a new file; refuses what is not ours."""
    application = _value(db, "pragma application_id")
    if application == 0 and _value(db, "select count(*) from sqlite_schema") == 0:
        return 0
    if application != APPLICATION_ID:
        raise FormatMismatch(
            f"{path} is not a Holdfast store: it belongs to another application; it was"
            " left as it is; check the path"
        )
    found = int(_value(db, "pragma user_version"))
    if found == 0:
        raise Corrupt(path, "its header has lost the number of its format")
    if found > FORMAT:
        raise FormatMismatch(
            f"{path} has format {found}, newer than {FORMAT}; upgrade holdfast"
        )
    return found


def check_whole(db: apsw.Connection, path: str) -> None:
    """Refuse a file that was cut short: SQLite reads zeros behind its end.

    The order matters. Pages that the file lacks may be in the log. If there is no log
    after the pages were counted, the file had all of them when it is measured.
    """
    if path == MEMORY or file_size(path) == 0:
        return
    pages, page = _value(db, "pragma page_count"), _value(db, "pragma page_size")
    logged = file_size(f"{path}-wal") > 0
    size = file_size(path)
    if not logged and size < pages * page:
        raise Corrupt(path, f"it has {size} bytes, not {pages * page}")


def check_guarded(db: apsw.Connection, path: str) -> None:
    """Refuse a file whose header has lost that its pages carry checksums.

    SQLite believes the header, and would check nothing any more.
    """
    query = "select 1 from setting where name = ?"
    if (
        db.execute(query, (GUARDED,)).fetchone()
        and reserved_bytes(db) != CHECKSUM_BYTES
    ):
        raise Corrupt(path, "its header says that its pages have no checksums")


def file_size(path: str) -> int:
    """The size of a file in bytes, -1 if there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _claim(db: apsw.Connection, path: str) -> None:
    """Keep a new file to its owner and make room for a checksum in its pages."""
    os.chmod(path, 0o600)
    if page_checksums() is None or reserved_bytes(db) == CHECKSUM_BYTES:
        return
    _reserve(db, CHECKSUM_BYTES)
    if _value(db, "pragma page_count"):  # another program made it, and no tables
        db.execute("pragma journal_mode = delete")
        for _ in range(2):  # the first makes room for them, the second fills it
            with unchecked_pages(db):
                db.execute("vacuum")


def _refuse_unchecked(db: apsw.Connection, path: str) -> None:
    """Refuse to write without the extension: pages would look damaged elsewhere."""
    if page_checksums() is None and reserved_bytes(db) == CHECKSUM_BYTES:
        raise Unsupported(
            f"{path} has checksums in its pages, and this build of apsw cannot keep"
            " them; install apsw from a wheel: pip install --force-reinstall apsw"
        )


def reserved_bytes(db: apsw.Connection) -> int:
    """The number of bytes left free in every page, as the header says."""
    return _reserve(db, -1)


def _reserve(db: apsw.Connection, room: int) -> int:
    """Set the bytes left free in every page, unless negative; returns what it was."""
    value = array("i", [room])
    address, _ = value.buffer_info()
    db.file_control("main", apsw.SQLITE_FCNTL_RESERVE_BYTES, address)
    return value[0]


def _use_wal(db: apsw.Connection, path: str) -> None:
    # The switch ignores the busy timeout, so processes that open a new file at the same
    # moment have to retry here.
    deadline = time.monotonic() + SWITCH_TIMEOUT
    while True:
        try:
            mode = _value(db, "pragma journal_mode = wal")
            break
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
    if mode != "wal":
        raise Unsupported(f"{path}: write-ahead logging does not work on that disk")


def _migrate(db: apsw.Connection) -> None:
    with transaction(db):
        # Read inside the transaction: another process may have migrated it first.
        for script in MIGRATIONS[int(_value(db, "pragma user_version")) :]:
            db.execute(text_of(script, __name__.rpartition(".")[0]))
        rows(db, "insert_setting", name=IDENTITY, value=os.urandom(16))
        if reserved_bytes(db) == CHECKSUM_BYTES:
            rows(db, "insert_setting", name=GUARDED, value=b"1")
        db.execute(f"pragma application_id = {APPLICATION_ID}")
        db.execute(f"pragma user_version = {FORMAT}")


def _set_up(db: apsw.Connection, path: str, durability: Durability) -> None:
    level = {"full": 2, "normal": 1}[durability]
    db.execute(f"pragma synchronous = {level}")
    db.execute(f"pragma fullfsync = {level - 1}")
    db.execute(f"pragma checkpoint_fullfsync = {level - 1}")
    db.execute(f"pragma journal_size_limit = {LARGEST_IDLE_WAL}")
    db.execute("pragma secure_delete = on")
    if _value(db, "pragma synchronous") != level:
        raise Unsupported(f"{path}: this SQLite refuses durability={durability!r}")


def _value(db: apsw.Connection, statement: str) -> Any:
    return db.execute(statement).fetchall()[0][0]
