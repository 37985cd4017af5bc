"""A Patroni cluster for the tests: etcd and nodes on loopback, then gone.

Patroni comes from the package index and etcd from Debian's packages. Both are put into
the cluster's own folder: nothing is installed on the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support import servers
from support.folders import ROOT
from support.outages import wait_until

REQUIREMENTS = ROOT / "requirements-thorough.txt"
# The shortest that Patroni accepts: so long after the last sign of life of a leader,
# another node takes its place.
SECONDS_TO_LIVE = 20
NODES = ("one", "two", "three")
# When the tests are gone, however that came about, it ends what is left and cleans up.
# A number of a process may have been given to another one: its command must name us.
JANITOR = """
cat > /dev/null
end() {
    process=$(head -n 1 "$3" 2> /dev/null)
    grep -qs "$1" "/proc/$process/cmdline" || return
    kill "$2" "$process"
    kill -CONT "$process" # it may be stopped
}
for file in "$1"/*/pid; do end "$1" -KILL "$file"; done
for file in "$1"/*/data/postmaster.pid; do end "$1" -QUIT "$file"; done
sleep 1
rm -rf "$1"
"""


class Node:
    """One Patroni and the PostgreSQL that it looks after."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self.port, self.control = servers.free_port(), servers.free_port()
        self._cluster = cluster
        self._folder = cluster.make_folder(name)
        self._patroni: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://holdfast@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        config = self._folder / "patroni.yml"
        # JSON is YAML too.
        config.write_text(json.dumps(self._config(), indent=1))
        command = [self._cluster.python, "-m", "patroni", str(config)]
        path = {"PYTHONPATH": str(self._cluster.packages)}
        self._patroni = self._cluster.start(self.name, command, path)

    def _config(self) -> dict[str, Any]:
        control = f"127.0.0.1:{self.control}"
        server = f"127.0.0.1:{self.port}"
        return {
            "scope": "holdfast",
            "name": self.name,
            "restapi": {"listen": control, "connect_address": control},
            "etcd3": {"hosts": [f"127.0.0.1:{self._cluster.etcd_port}"]},
            "bootstrap": {
                "dcs": CLUSTER,
                "initdb": [{"encoding": "UTF8"}, "data-checksums", "no-sync"],
            },
            "postgresql": {
                "listen": server,
                "connect_address": server,
                "bin_dir": str(self._cluster.binaries),
                "data_dir": str(self._folder / "data"),
                "pgpass": str(self._folder / "pgpass"),
                "authentication": {
                    "superuser": {"username": "holdfast"},
                    "replication": {"username": "holdfast"},
                },
                "pg_hba": [
                    "host all all 127.0.0.1/32 trust",
                    "host replication all 127.0.0.1/32 trust",
                ],
                "parameters": {"unix_socket_directories": "", "fsync": "off"},
            },
        }

    def _server(self) -> list[int]:
        """The processes of PostgreSQL."""
        first = (self._folder / "data" / "postmaster.pid").read_text().split()[0]
        return servers.family_of(int(first))

    def kill(self) -> None:
        """End Patroni and PostgreSQL at once, as a power cut does."""
        assert self._patroni is not None
        processes = [self._patroni.pid, *self._server()]
        _signal(processes, signal.SIGKILL)
        self._patroni.wait()
        wait_until(lambda: not any(map(servers.is_running, processes)))

    @contextlib.contextmanager
    def hung(self) -> Iterator[None]:
        """Patroni and PostgreSQL are stopped where they are, until this ends."""
        assert self._patroni is not None
        _signal([self._patroni.pid, *self._server()], signal.SIGSTOP)
        try:
            yield
        finally:
            _signal([self._patroni.pid, *self._server()], signal.SIGCONT)

    def wake_server(self) -> None:
        """Let PostgreSQL go on, but not the Patroni that would tell it what it is."""
        _signal(self._server(), signal.SIGCONT)

    def has_role(self, role: str) -> bool:
        """Whether Patroni says that the node has a role and works."""
        try:
            address = f"http://127.0.0.1:{self.control}/{role}"
            with urllib.request.urlopen(address, timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def is_writable(self) -> bool:
        """Whether the server accepts writers."""
        try:
            with psycopg.connect(self.url, connect_timeout=2) as connection:
                return connection.execute("select pg_is_in_recovery()").fetchone() == (
                    False,
                )
        except psycopg.Error:
            return False


# What the nodes agree on. A commit is acknowledged when a second node has it.
CLUSTER: dict[str, Any] = {
    "ttl": SECONDS_TO_LIVE,
    "loop_wait": 1,
    "retry_timeout": 8,
    "synchronous_mode": True,
    "postgresql": {"use_pg_rewind": True, "parameters": {"max_connections": 100}},
}


class Cluster:
    """Three nodes, and one etcd in which they agree on the leader."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-patroni-"))
        self.user = servers.unprivileged()
        self.packages = self.folder / "packages"
        self.binaries = servers.NEWEST
        self.etcd_port = servers.free_port()
        self._started: list[subprocess.Popen[bytes]] = []
        self._janitor = subprocess.Popen(
            ["/bin/sh", "-c", JANITOR, "janitor", str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.folder.chmod(0o755)
        self.python = _interpreter(self.user)
        self.nodes = [Node(self, name) for name in NODES]

    @property
    def url(self) -> str:
        """The address that leads to the leader, whichever node that is."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgresql://holdfast@{hosts}/postgres?target_session_attrs=read-write"

    @property
    def leader(self) -> Node:
        [found] = [node for node in self.nodes if node.has_role("primary")]
        return found

    def make_folder(self, name: str) -> Path:
        """A folder of a process, in which it may write."""
        folder = self.folder / name
        folder.mkdir()
        if self.user is not None:
            shutil.chown(folder, self.user)
        return folder

    def start(
        self, name: str, command: list[str], variables: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        """Start a process whose number the janitor finds."""
        folder = self.folder / name
        with open(folder / "log", "ab") as log:
            process = subprocess.Popen(
                command,
                user=self.user,
                cwd=folder,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"} | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        (folder / "pid").write_text(f"{process.pid}\n")
        self._started.append(process)
        return process

    def install(self) -> None:
        """Get Patroni and etcd; skips the test, with the reason, if that fails."""
        self.etcd = shutil.which("etcd") or _unpacked_etcd(self.folder)
        install = ("-m", "pip", "--python", self.python, "install", "--quiet")
        what = ("--target", str(self.packages), "-r", str(REQUIREMENTS))
        _run_or_skip([sys.executable, *install, *what], "Patroni cannot be installed")

    def begin(self) -> None:
        """Start etcd and all nodes, and wait until they are a cluster."""
        self._start_etcd()
        for node in self.nodes:
            node.start()
        self.wait_until_whole()

    def _start_etcd(self) -> None:
        data = self.make_folder("etcd") / "data"
        clients = f"http://127.0.0.1:{self.etcd_port}"
        peers = f"http://127.0.0.1:{servers.free_port()}"
        options = {
            "name": "etcd",
            "data-dir": data,
            "listen-client-urls": clients,
            "advertise-client-urls": clients,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"etcd={peers}",
        }
        given = [f"--{name}={value}" for name, value in options.items()]
        self._etcd = self.start("etcd", [self.etcd, *given], {})

    @contextlib.contextmanager
    def without_etcd(self) -> Iterator[None]:
        """No node can find out whether it is still the leader, until this ends."""
        self._etcd.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._etcd.send_signal(signal.SIGCONT)

    def wait_until_whole(self) -> None:
        """Wait for a leader, a synchronous standby and another standby."""
        wait_until(self._is_whole, self.logs)

    def hand_over(self, leader: Node) -> None:
        """Let a leader give its place to its synchronous standby."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{leader.control}/switchover",
            json.dumps({"leader": leader.name}).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=60).close()

    def _is_whole(self) -> bool:
        return all(
            sum(node.has_role(role) for node in self.nodes) == count
            for role, count in (("primary", 1), ("synchronous", 1), ("replica", 2))
        )

    def logs(self) -> str:
        """The end of what each process has said."""
        return "\n".join(
            f"{log}:\n{log.read_text(errors='replace')[-3000:]}"
            for log in sorted(self.folder.glob("*/log"))
        )

    def remove(self) -> None:
        """End everything and remove the folder; the janitor does it."""
        self._janitor.communicate()
        for process in self._started:
            process.wait()


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """A running cluster, removed afterwards."""
    made = Cluster()
    try:
        made.install()
        made.begin()
        yield made
    finally:
        made.remove()


def _signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _interpreter(user: str | None) -> str:
    """A Python that the user of the servers may run: ours, or the machine's."""
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            subprocess.run([python, "-c", "import venv"], user=user, check=True)
            return python
    pytest.skip(f"there is no Python that the user {user} may run, and so no Patroni")


def _unpacked_etcd(folder: Path) -> str:
    """etcd from Debian's package, which is unpacked and not installed."""
    if shutil.which("apt-get") is None:
        pytest.skip("etcd is not installed, and there is no apt-get to get it with")
    # Lists of our own: those of the machine may be old or missing, and are root's.
    lists, unpacked = folder / "lists", folder / "etcd-server"
    (lists / "partial").mkdir(parents=True)
    options = (f"Dir::State::Lists={lists}", f"Dir::Cache={folder}")
    apt = ["apt-get", "--quiet", *(f"--option={option}" for option in options)]
    for command in ([*apt, "update"], [*apt, "download", "etcd-server"]):
        _run_or_skip(command, "etcd cannot be had from Debian's packages", folder)
    [package] = folder.glob("etcd-server_*.deb")
    subprocess.run(["dpkg-deb", "--extract", package, unpacked], check=True)
    return str(unpacked / "usr" / "bin" / "etcd")


def _run_or_skip(command: list[str], reason: str, folder: Path | None = None) -> None:
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    if ended.returncode:
        pytest.skip(f"{reason}: {ended.stderr[-500:]}")
