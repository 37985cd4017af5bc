"""`holdfast compact`: give unused space back to the file system."""

from __future__ import annotations

from holdfast.cli import _command, _documents
from holdfast.cli._session import Session


@_command.command("compact")
def command(session: Session) -> None:
    """Give the space of what was removed back to the file system.

    Nothing that is there is changed. Others can read meanwhile, and writers wait.
    """
    with session.writing() as store:
        before = store.stats().file_bytes
        session.out.note(f"writing {_documents.size(before)} anew ...")
        store.compact()
        after = store.stats().file_bytes
    session.out.done(
        "compact/1",
        {"before_bytes": before, "after_bytes": after, "freed_bytes": before - after},
        (f"{_documents.size(before)} {session.out.glyphs.arrow} ", ""),
        (_documents.size(after), "name"),
        (f"  {_documents.size(max(0, before - after))} freed", "faint"),
    )
