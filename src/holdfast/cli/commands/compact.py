"""`holdfast compact`: join small pieces, and give unused space back."""

from __future__ import annotations

from holdfast.cli import _command
from holdfast.cli._invocation import Invocation
from holdfast.cli._text import size


@_command.command("compact")
def command(cli: Invocation) -> None:
    """Make a store smaller: join small pieces, and give unused space back.

    What is stored in small pieces becomes blocks, which compress better and load
    faster, and the space of removed checkpoints goes back to the file system. No state
    changes. Other processes can read meanwhile; writers wait.
    """
    with cli.writing() as store:
        before = store.stats().file_bytes
        cli.out.note(f"rewriting {size(before)} ...")
        store.compact()
        after = store.stats().file_bytes
    cli.out.done(
        "compact/1",
        {"before_bytes": before, "after_bytes": after, "freed_bytes": before - after},
        (f"{size(before)} {cli.out.glyphs.arrow} ", ""),
        (size(after), "name"),
        (f"  {size(max(0, before - after))} freed", "faint"),
    )
