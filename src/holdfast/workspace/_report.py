"""The report of a restore of files, made or previewed."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast._values.records import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """The files that a restore changed; with ``done`` false, those that it would.

    ``written`` are new or other files, ``removed`` are gone. ``conflicts`` were changed
    since the last snapshot; ``obstacles`` are in no snapshot and in the way. ``left``
    says of each path that stays why it does. ``kept`` are files in `.holdfast` that
    appeared in the way while it ran. Restoring ``recovery`` takes it all back.
    """

    checkpoint: Checkpoint
    done: bool
    state: bool = False
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    recovery: Checkpoint | None = None
