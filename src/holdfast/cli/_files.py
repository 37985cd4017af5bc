"""The files of checkpoints on the command line: one of them, and what changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from holdfast._api.store import Store
from holdfast._values.file_diff import FileChange
from holdfast.cli._invocation import Invocation
from holdfast.cli._resolve import locate
from holdfast.cli._text import size
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line
from holdfast.errors import NotFound
from holdfast.views.files import file_change_documents
from holdfast.views.references import Revision, shown_reference

# Between a checkpoint and the path of a file, as Git writes it.
COLON = ":"
_STYLES = {"+": "added", "-": "removed"}


def file_named(store: Store, text: str) -> tuple[Revision, str] | None:
    """The checkpoint and the path that ``REF:path`` means, if it means a file."""
    for place in (n for n, letter in enumerate(text) if letter == COLON):
        reference, path = text[:place], text[place + 1 :]
        try:
            found = locate(store, reference) if reference and path else None
            if found is not None and path in found.thread.files(found.checkpoint):
                return found, path
        except NotFound:
            continue
    return None


def show_file(cli: Invocation, target: Revision, path: str) -> None:
    """Print the content of a file as it is, or with ``--json`` what is known of it."""
    if cli.out.is_json:
        entry = target.thread.files(target.checkpoint)[path]
        about = {"path": path, "size": entry.size, "mode": f"{entry.mode:o}"}
        cli.out.document("file/1", {**about, "sha256": entry.digest.hex()})
        return
    content = target.thread.read_file(path, target.checkpoint)
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def show_file_changes(
    cli: Invocation, store: Store, old: Revision, new: Revision, path: str | None
) -> bool:
    """Print which files differ; returns whether any does."""
    found = old.thread.diff_files(old.checkpoint, new.checkpoint, path=path)
    ends = [shown_reference(store, end.checkpoint, end.thread) for end in (old, new)]
    document: dict[str, object] = {
        "a": {"thread": old.thread.id, "checkpoint": old.checkpoint.id},
        "b": {"thread": new.thread.id, "checkpoint": new.checkpoint.id},
        "files": file_change_documents(found),
    }
    cli.out.answer("file-diff/1", document, _lines(cli.out, ends, found))
    return bool(found)


def _lines(
    out: Output, ends: Sequence[str], found: Sequence[FileChange]
) -> Iterator[Line]:
    old, new = ends
    yield ((f"{old} {out.glyphs.arrow} {new}", "title"),)
    for change in found:
        yield _heading(out, change)
        for line in change.lines:
            yield ((f"  {line}", _STYLES.get(line[:1], "")),)
    if not found:
        yield (("no file differs", "faint"),)


def _heading(out: Output, change: FileChange) -> Line:
    sizes = [size(n) for n in (change.old_size, change.new_size) if n is not None]
    told = f" {out.glyphs.arrow} ".join(dict.fromkeys(sizes))
    return ((f"{change.op} {change.path}", "name"), (f"  {told}", "faint"))
