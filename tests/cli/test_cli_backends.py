"""The command line says the same of a store, whatever keeps it."""

from __future__ import annotations

import contextlib

import pytest
import stores

import holdfast
from holdfast.cli import main
from holdfast.selftest import selftest
from holdfast.testing import blocking
from inner.api import shown_address
from inner.postgres import bind_role
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
        ("postgresql://ann:p?s@a:b@db/x", "postgresql://ann:***@db/x"),
        (
            "postgresql://db/x?%70assword=s&sslPASSWORD=t&a=b",
            "postgresql://db/x?%70assword=***&sslPASSWORD=***&a=b",
        ),
        ("dir:a@b", "dir:a@b"),
    ],
)
def test_no_password_is_shown(address, shown):
    assert shown_address(address) == shown


SECRET = "Sup3rS3cret"
# A bracket, a port and an escape that are none, an option without a value, a slash in a
# password, another form, a byte that no address has, and another kind of store.
UNREADABLE = (
    f"postgresql://app:{SECRET}@[::bad/db",
    f"postgresql://app:{SECRET}@host:54x2/db",
    f"postgresql://app:{SECRET}%PW@host/db",
    f"postgresql://app:{SECRET}@host/db?x",
    f"postgresql://app:1/{SECRET}@host/db",
    f"postgresql://app:{SECRET}/1@host/db",
    f"postgresql:app:{SECRET}@host/db",
    f"POSTGRESQL://app:{SECRET}@host/db",
    f"host=host user=app password={SECRET}",
    f"password = '{SECRET} and more' dbname=db",
    f"postgresql://app:{SECRET}@host/\0",
    f"mysql://app:{SECRET}@host/db",
)


@pytest.mark.parametrize("address", UNREADABLE)
def test_the_password_of_an_unreadable_address_is_not_told(address, capsys, tmp_path):
    found = []
    for way in (
        lambda: holdfast.open(address, busy_timeout=1),
        lambda: holdfast.open(address, pool=(1, 2)),
        lambda: blocking(holdfast.open_async(address, busy_timeout=1)),
        lambda: bind_role(address, "ann", "a"),
        lambda: holdfast.salvage(address, tmp_path / "saved"),
        lambda: selftest(stores=[address], only=["kill"], at=str(tmp_path)),
    ):
        with pytest.raises(holdfast.HoldfastError) as refused:
            way()
        error: BaseException | None = refused.value
        while error is not None:
            found.append(repr(error))
            error = error.__context__
    for command in ("threads", "threads --json", "doctor --json", "stats", "serve"):
        assert main([*command.split(), "--store", address])
        found += capsys.readouterr()

    assert SECRET not in "".join(found)
