"""The clock of a file system, which goes on in ticks of some milliseconds."""

from pathlib import Path


def next_tick(folder: Path) -> None:
    """Wait for the next tick: by time, two changes within one cannot be told apart."""
    probe = folder.parent / "clock"
    probe.touch()
    first = probe.stat().st_mtime_ns
    while probe.stat().st_mtime_ns == first:
        probe.touch()
