"""The command line says the same of a store, whatever keeps it."""

from __future__ import annotations

import contextlib

import pytest
import stores

from holdfast._api.address import shown_address
from holdfast.cli import main
from support import databases, servers

COMMANDS = (
    "threads",
    "log --graph support-4812",
    "log --all support-4812 --json",
    "log support-4812..fix-policy --changes",
    "show fix-policy@label:golden --json",
    "diff support-4812@{2} fix-policy",
    "reflog support-4812",
    "blame verdict fix-policy",
    "fork support-4812@2 again --set attempts=3",
    "tag again cheap",
    "rewind again@1 --yes",
    "undo again",
    "show again --state",
)
TRIP = (
    "threads",
    "effects conversation:trip-7",
    "effects conversation:trip-7 --left-behind",
    "effects conversation:try-train --since @1",
    "journal conversation:trip-7",
    "show conversation:trip-7",
    "rewind conversation:try-train@1 --dry-run",
    "fork conversation:try-train@1 again --effects run",
    "threads --prefix again",
)


@contextlib.contextmanager
def on_server(_folder):
    with databases.database(servers.shared(servers.NAMES[-1])) as url:
        yield url


@contextlib.contextmanager
def in_folder(folder):
    yield f"dir:{folder}/texts"


@pytest.mark.parametrize("place", [in_folder, on_server])
@pytest.mark.parametrize(
    ("make", "commands"), [(stores.make_support, COMMANDS), (stores.make_trip, TRIP)]
)
def test_every_backend_gives_the_same_answers(place, make, commands, tmp_path, capsys):
    make(tmp_path / "agents.db")
    expected = answers(str(tmp_path / "agents.db"), commands, capsys)

    with place(tmp_path) as address:
        make(address)
        found = answers(address, commands, capsys)

    assert found == expected


def answers(address, commands, capsys):
    said = {}
    for command in commands:
        status = main([*command.split(), "--store", address])
        said[command] = (status, *capsys.readouterr())
    return said


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:se/cret@db/x", "postgresql://ann:***@db/x"),
        (
            "postgresql://db:5432/x?password=s&a=b",
            "postgresql://db:5432/x?password=***&a=b",
        ),
        ("postgresql://ann@db:5432/x", "postgresql://ann@db:5432/x"),
        ("dir:a@b", "dir:a@b"),
    ],
)
def test_no_password_is_shown(address, shown):
    assert shown_address(address) == shown
