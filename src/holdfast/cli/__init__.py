"""The command line: `holdfast` and its commands, each over the library's public API."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status is one of those in docs/cli.md."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        return _version()
    try:
        # Imported here: asking for the version must not load click.
        from holdfast.cli._run import run  # noqa: PLC0415

        return run(arguments)
    except KeyboardInterrupt:
        return 130


def _version() -> int:
    from holdfast import __version__  # noqa: PLC0415

    sys.stdout.write(f"holdfast {__version__}\n")
    return 0
