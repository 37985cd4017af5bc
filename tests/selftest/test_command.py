"""`holdfast selftest` as people start it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psycopg
import pytest

from support import databases, servers
from support.effort import QUICK
from support.folders import TESTS

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(QUICK, reason="starts processes: make test"),
]

COMMAND = (sys.executable, "-m", "holdfast", "selftest")
SABOTAGED = """
from inner.sqlite import SqliteBackend
from support.sabotage import Dropping

def open_dropping(address, **options):
    path = address.partition(":")[2]
    return Dropping(SqliteBackend(path, **options))
"""


def ran(*arguments, paths=()):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )


def test_a_sound_store_gives_0_and_leaves_nothing_behind(tmp_path):
    ended = ran("--at", tmp_path, "--only", "clocks", "--only", "8", "--json")

    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert [(row["row"], row["store"], row["verdict"]) for row in found["rows"]] == [
        ("hung-server", "postgresql", "not run"),
        ("clocks", "file", "holds"),
        ("clocks", "dir", "holds"),
    ]
    assert found["rows"][0]["note"] == "needs --store postgresql://..."
    assert os.listdir(tmp_path) == []


@pytest.fixture
def database():
    """A database of its own: other tests leave such schemas on the server."""
    with databases.database(servers.shared(servers.NAMES[-1])) as url:
        yield url


@pytest.mark.servers
def test_a_server_is_tested_in_schemas_that_are_dropped(database):
    only = ("--only", "clocks", "--only", "ended-connections")

    ended = ran("--store", database, *only, "--json")

    assert ended.returncode == 0, ended.stdout
    verdicts = [row["verdict"] for row in json.loads(ended.stdout)["rows"]]
    assert verdicts == ["holds", "holds"]
    with psycopg.connect(database) as connection:
        found = "select 1 from pg_namespace where nspname like 'holdfast_selftest%'"
        assert connection.execute(found).fetchall() == []


@pytest.fixture
def package(tmp_path):
    """A backend of another package, which acknowledges what it does not save."""
    about = tmp_path / "package" / "sabotaged-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: sabotaged\nVersion: 1\n"
    )
    entry = "[holdfast.backends]\nsabotaged = sabotaged:open_dropping\n"
    (about / "entry_points.txt").write_text(entry)
    (about.parent / "sabotaged.py").write_text(SABOTAGED)
    return about.parent


def test_a_broken_promise_gives_1_and_the_table_says_which(package, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    only = ("--only", "clocks", "--only", "fidelity", "--only", "boundaries")

    ended = ran("--at", place, "--store", "sabotaged", *only, paths=[package, TESTS])

    assert ended.returncode == 1, ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert [line[-1] for line in lines if "clocks" in line] == ["broken"]
    assert "the state of the thread is older" in ended.stdout
    assert "boundaries" in ended.stdout
    assert "not run: needs --store file or --store dir" in ended.stdout
    assert os.listdir(place) == []


def test_what_was_made_is_removed_when_it_is_interrupted(tmp_path):
    only = ("--only", "clocks", "--only", "kills", "--store", "file")
    arguments = ("--full", "--at", str(tmp_path), *only)
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        first = process.stderr.readline()  # its progress, after a second
        made = os.listdir(tmp_path)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=120)

    assert first.startswith(b"Testing")
    assert len(made) == 1
    assert process.returncode == 130
    assert b"0 broken" in printed
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--quick", "--full"], 2, "choose one of --quick and --full"),
        (["--only", "nothing"], 3, "there is no row 'nothing'"),
        (["--store", "agents.db"], 2, "no store of yours is tested"),
        (["--store", "postgresql://127.0.0.1:1/none"], 6, "cannot be reached"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, status, said):
    ended = ran(*arguments)

    assert ended.returncode == status
    assert said in ended.stderr
