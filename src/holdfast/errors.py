"""The errors that Holdfast raises on purpose.

    HoldfastError
    ├── NotFound        (LookupError)   no such thread, checkpoint, label, tag or file
    ├── Conflict                        another writer was first; nothing was changed
    ├── Busy            (TimeoutError)  the store stayed locked past the timeout
    ├── Closed                          the store was closed
    ├── Corrupt                         stored bytes are not what was written
    ├── FormatMismatch                  not a store, too new, or not the requested type
    ├── Unstorable      (TypeError)     a value, id or argument that cannot be stored
    └── Unsupported                     a missing ability or permission; if a package
                                        is missing, an ImportError too

Each carries a stable ``code`` and a message that ends with what to do next; its class
says the exit status of a command, the status of an HTTP response, and what a model
reads beside the message. A failing disk raises ``HoldfastError`` itself, with the code
``disk_full`` or ``io_error``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:  # an import cycle
    from holdfast._values.merge import MergeConflict
    from holdfast._values.records import Checkpoint

__all__ = [
    "Busy",
    "Closed",
    "Conflict",
    "Corrupt",
    "FormatMismatch",
    "HoldfastError",
    "NotFound",
    "Unstorable",
    "Unsupported",
]


_ADVICE = (
    "run verify() for the extent, salvage() to save the rest, or go back to a backup"
)


class HoldfastError(Exception):
    """The root: catch this to catch everything Holdfast raises on purpose."""

    default_code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 70
    http_status: ClassVar[int] = 500
    tool_hint: ClassVar[str] = "Do not retry. Tell the user what it says."

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code

    def __str__(self) -> str:
        return self.message


class NotFound(HoldfastError, LookupError):
    """The named thing does not exist; ``matches`` are the candidates if ambiguous."""

    default_code = "not_found"
    exit_status = 3
    http_status = 404
    tool_hint = "Look its id up with the tool that lists them, then call again."

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        thread: str | None = None,
        reference: str | None = None,
        matches: Sequence[str] = (),
    ) -> None:
        super().__init__(message, code=code)
        self.thread = thread
        self.reference = reference
        self.matches = tuple(matches)


class Conflict(HoldfastError):
    """The condition of a write failed; ``found`` is the head that the thread has.

    ``conflicts`` are the places that a merge could not decide, ``paths`` the files that
    a restore would have overwritten.
    """

    default_code = "conflict"
    exit_status = 5
    http_status = 409
    tool_hint = "Another process changed it meanwhile; load it again, then repeat."

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        thread: str | None = None,
        expected: str | None = None,
        found: Checkpoint | None = None,
        conflicts: Sequence[MergeConflict] = (),
        paths: Sequence[str] = (),
    ) -> None:
        super().__init__(message, code=code)
        self.thread = thread
        self.expected = expected
        self.found = found
        self.conflicts = tuple(conflicts)
        self.paths = tuple(paths)


class Busy(HoldfastError, TimeoutError):
    """Another writer held the store for longer than the timeout."""

    default_code = "busy"
    exit_status = 5
    http_status = 423
    tool_hint = "Another process is writing; call again in a moment."


class Closed(HoldfastError):
    """The store is closed."""

    default_code = "closed"

    def __init__(self, message: str = "the store is closed; open it again") -> None:
        super().__init__(message)


class Corrupt(HoldfastError):
    """Stored bytes are damaged; ``what`` names them.

    ``lost`` is how many acknowledged changes are missing at the end, if that is known.
    """

    default_code = "corrupt"
    exit_status = 4
    tool_hint = "Do not retry. Tell the user that the store is damaged."

    def __init__(
        self, what: str, detail: str = "", *, advice: str = "", lost: int = 0
    ) -> None:
        reason = f": {detail}" if detail else ""
        super().__init__(f"{what} is damaged{reason}; {advice or _ADVICE}")
        self.what = what
        self.detail = detail
        self.lost = lost


class FormatMismatch(HoldfastError):
    """A file that is not a store or of a newer format, or a state of another type."""

    default_code = "format_mismatch"
    exit_status = 7
    tool_hint = "Do not retry. Tell the user that the store cannot be read."


class Unstorable(HoldfastError, TypeError):
    """A value or an argument that cannot be stored; ``path`` says where it is."""

    default_code = "unstorable"
    exit_status = 2
    http_status = 400
    tool_hint = "Correct the argument and call again."

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Unsupported(HoldfastError):
    """Something that this store, installation or permission does not allow."""

    default_code = "unsupported"
    exit_status = 6
    http_status = 403
    tool_hint = "Do not retry: this store does not allow it. Reading still works."


class MissingExtra(Unsupported, ImportError):
    """A package that is not installed; the message has the command that installs it."""

    default_code = "missing_extra"
    tool_hint = HoldfastError.tool_hint
