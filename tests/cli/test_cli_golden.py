"""Every command prints what its transcript in golden/ says, piped and on a terminal.

To add a case, write its "$ holdfast ..." line into a transcript; UPDATE_GOLDEN=1 writes
down what is printed now, to be read before it is kept.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
import stores
import transcripts
from forks import forks

from inner.cli import NAMES

GOLDEN = Path(__file__).parent / "golden"
TRANSCRIPTS = sorted(path.name for path in GOLDEN.glob("*.txt"))
# A transcript works on the store of this name, `support` unless it is listed here.
MAKERS = {
    "behind.txt": stores.make_trip,
    "damaged.txt": stores.make_damaged,
    "effects.txt": stores.make_trip,
    "hostile.txt": stores.make_hostile,
    "journal.txt": stores.make_trip,
    "resolve.txt": stores.make_trip,
    "restore.txt": stores.make_agent,
    "search.txt": stores.make_travel,
    "waiting.txt": stores.make_trip,
    "width.txt": stores.make_wide,
}


@pytest.fixture(scope="module")
def commands():
    with forks() as commands:
        yield commands


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_commands_print_what_their_transcript_says(name, tmp_path, commands):
    make = MAKERS.get(name, stores.make_support)
    make(tmp_path / "agents.db")
    expected = (GOLDEN / name).read_text()

    found = transcripts.replay(expected, tmp_path, commands)

    if "UPDATE_GOLDEN" in os.environ:
        (GOLDEN / name).write_text(found)
        pytest.fail("rewritten: read it, then run again without UPDATE_GOLDEN")
    assert found == expected


def test_every_command_has_a_transcript():
    typed = [
        shlex.split(command["written"])
        for name in TRANSCRIPTS
        for line in (GOLDEN / name).read_text().splitlines()
        if (command := transcripts.COMMAND.fullmatch(line))
    ]

    found = {next((word for word in words if word in NAMES), "") for words in typed}
    assert set(NAMES) == found - {""}
