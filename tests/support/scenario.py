"""The scenario of the selftest, and stores as earlier versions left them."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

from holdfast.testing.trials.scenario import (
    AGENT_OPERATIONS,
    FILE,
    FOLDER,
    OPERATIONS,
    STEPS,
    Source,
    address,
    build,
    build_agents,
    build_for,
    copy_folder,
    dump,
    goes_on,
    lazy_disk,
    messages,
    problems_of,
)

__all__ = [
    "AGENT_OPERATIONS",
    "FILE",
    "FOLDER",
    "OPERATIONS",
    "STEPS",
    "Source",
    "address",
    "build",
    "build_agents",
    "build_for",
    "copy_folder",
    "dump",
    "goes_on",
    "lazy_disk",
    "messages",
    "problems_of",
    "unpack_format_1",
]

FORMAT_1 = Path(__file__).parent.parent / "fixtures" / "format-1" / "agents.db.gz"


def unpack_format_1(path: str) -> None:
    """Make a file as the version before format 2 left it."""
    with gzip.open(FORMAT_1) as stored, open(path, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        shutil.copyfileobj(stored, file)
