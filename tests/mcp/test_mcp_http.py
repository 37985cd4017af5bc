"""Which requests are served over HTTP, and how the others are refused."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess

import psutil
import pytest
from served import DEADLINE, command, environment, over_http, refused, serving

from adapters.mcp_events.served import Session, messages
from support.servers import free_port

pytestmark = pytest.mark.processes

TOKEN = "a-token-that-is-long-enough"
LISTING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
AS_MCP = {
    "content_type": "application/json",
    "accept": "application/json, text/event-stream",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("http") / "store.db") as found:
        yield found


def test_the_token_is_shown_once(served):
    shown = [line for line in served.said if served.token in line]

    assert shown == [f"token: {served.token}\n"]
    assert len(served.token) == 32  # 192 bits


def test_it_listens_on_loopback_only(served):
    connections = psutil.Process(served.process.pid).net_connections()

    listening = [c.laddr for c in connections if c.status == psutil.CONN_LISTEN]

    assert listening == [("127.0.0.1", served.port)]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:{}", "[::1]:{}"])
def test_the_names_of_loopback_are_served_with_the_own_port_or_none(served, host):
    host = host.format(served.port)

    status, body, _ = served.answer(body=LISTING, host=host, **AS_MCP)

    assert status == 200
    assert "agent_save" in body


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "192.168.1.2",
        "",
        "localhost:1",
        "[::1]:80",
    ],
)
def test_another_name_is_misdirected(served, host):
    status, body, _ = served.answer(body=LISTING, host=host, **AS_MCP)

    assert status == 421
    assert "this server is not" in body


def test_a_page_from_elsewhere_is_refused_even_with_the_token(served):
    ours = f"127.0.0.1:{served.port}"
    origins = ["http://evil.example", "null", "http://localhost:3000", f"ftp://{ours}"]

    statuses = [
        served.answer(body=LISTING, host=ours, origin=origin, **AS_MCP)[0]
        for origin in [*origins, f"http://{ours}"]
    ]

    assert statuses == [403, 403, 403, 403, 200]


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic {}", "{}", "Bearer {}x"],
)
@pytest.mark.parametrize("path", ["/mcp", "/", "/.well-known/nothing"])
def test_without_the_token_nothing_is_served(served, authorization, path):
    given = authorization and authorization.format(served.token)

    status, body, headers = served.answer(
        path=path, body=LISTING, authorization=given, **AS_MCP
    )

    assert status == 401
    assert "Authorization: Bearer" in body
    assert served.token not in body
    assert headers["www-authenticate"] == "Bearer"


def test_two_tokens_are_none(served):
    request = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
        f"Authorization: Bearer {served.token}\r\nAuthorization: Bearer x\r\n\r\n"
    )

    with socket.create_connection(("127.0.0.1", served.port), DEADLINE) as connection:
        connection.sendall(request.encode())
        answer = connection.recv(100)

    assert answer.startswith(b"HTTP/1.1 401")


def test_no_other_path_is_there_and_nothing_else_is_understood(served):
    elsewhere = served.answer(path="/", body=LISTING, **AS_MCP)[0]
    broken = served.answer(body=b"{", **AS_MCP)[0]
    form = served.answer(body=b"a=b", content_type="text/plain")[0]

    assert (elsewhere, broken, form) == (404, 400, 400)


@pytest.mark.parametrize("id_", ["1", "9" * 5_000])
def test_a_client_that_resumes_is_told_that_no_sessions_are_kept(served, id_):
    asked = {**AS_MCP, "last-event-id": id_}

    status, body, headers = served.answer("GET", **asked)

    assert (status, headers["allow"]) == (405, "POST")
    assert "--resumable" in body
    assert served.answer(body=LISTING, **asked)[0] == 200


def test_a_token_can_be_given_in_a_file(tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    asked = ("--token-file", str(file))

    with serving(tmp_path / "s.db", *asked, HOLDFAST_TOKEN="of-the-environment") as at:
        environments = at.answer(body=LISTING, **AS_MCP)[0]
        at.token = TOKEN
        files = at.answer(body=LISTING, **AS_MCP)[0]

    assert (environments, files) == (401, 200)


@pytest.mark.parametrize("given", ["short", "not of ASCII, though long: ä", ""])
def test_a_token_that_cannot_be_one_is_refused(tmp_path, capsys, given):
    file = tmp_path / "token"
    file.write_text(given)
    asked = ("--http", "--token-file", str(file))

    status, said = refused(capsys, tmp_path / "s.db", *asked)

    assert status == 2
    assert "token: must be 16 or more printable characters" in said


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--http", "--quiet"), "--token-file or HOLDFAST_TOKEN"),
        (("--http", "--resumable", "--read-only"), "leave one out"),
        (("--port", "8414"), "--resumable need --http"),
        (("--http", "--token-file", "nowhere"), "'nowhere' does not exist"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, capsys, arguments, text):
    store = tmp_path / "s.db"

    status, said = refused(capsys, store, *arguments)

    assert status == 2
    assert text in said
    assert not store.exists()


def test_a_port_that_is_taken_is_named(served, tmp_path, capsys):
    asked = ("--http", "--port", str(served.port))

    status, said = refused(capsys, tmp_path / "s.db", *asked)

    assert status == 6
    assert f"cannot listen on 127.0.0.1:{served.port}" in said


def test_a_program_is_told_the_address_and_a_new_token_as_json(served, tmp_path):
    with subprocess.Popen(
        command(tmp_path / "store.db", "--http", "--json"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        lines = []
        while lines[-1:] != ["}\n"]:
            lines.append(process.stdout.readline())
        process.terminate()
        _, said = process.communicate(timeout=DEADLINE)

    told = json.loads("".join(lines))
    assert told["schema"] == "holdfast.mcp/1"
    assert told["url"].startswith("http://127.0.0.1:")
    assert len(told["token"]) == 32
    assert told["token"] != served.token
    assert (process.returncode, said) == (0, "")


def test_other_machines_are_served_when_asked_for_and_warned_of(tmp_path):
    store = tmp_path / "store.db"
    asked = ("--host", "0.0.0.0", "--allow-host", "Agents.example:443")
    tunnel = ("--allow-host", "localhost:9")

    with serving(store, *asked, *tunnel) as served:
        ours = ("10.1.2.3", "[fe80::1]", f"10.1.2.3:{served.port}", "agents.example")
        others = ("10.1.2.3:80", "agents.example:80", "evil.example")
        statuses = [
            served.answer(body=LISTING, host=host, **AS_MCP)[0]
            for host in (*ours, "localhost:9", *others)
        ]
        without = served.answer(host="10.1.2.3", authorization=None)[0]
        served.process.terminate()
        said = served.process.stderr.read()

    assert statuses == [200, 200, 200, 200, 200, 421, 421, 421]
    assert without == 401
    assert "warning: http://0.0.0.0:" in said
    assert "nothing is encrypted" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_told_to_even_while_a_client_listens(tmp_path, number):
    store = tmp_path / "store.db"
    with serving(store) as served, over_http(served, "legacy") as remote:
        remote.result("agent_save", agent_id="a")
        listening = socket.create_connection(("127.0.0.1", served.port), DEADLINE)
        request = (
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer {served.token}\r\n\r\n"
        )
        listening.sendall(request.encode())
        opened = listening.recv(100)

        served.process.send_signal(number)
        status = served.process.wait(DEADLINE)
        said = served.process.stderr.read()
        listening.close()

    assert opened.startswith(b"HTTP/1.1 200")
    assert status == {signal.SIGTERM: 0, signal.SIGINT: 130}[number]
    assert said.startswith("clients send it as")
    assert len(said.splitlines()) == 1
    assert not os.path.exists(f"{store}-wal")


def test_clients_go_on_with_a_server_that_was_killed_and_started_again(tmp_path):
    store = tmp_path / "store.db"
    with (
        serving(store, "--port", str(free_port()), HOLDFAST_TOKEN=TOKEN) as first,
        over_http(first, "auto") as modern,
        over_http(first, "legacy") as legacy,
    ):
        modern.result("agent_save", agent_id="a", state={"n": 1})
        legacy.result("agent_save", agent_id="b", state={"n": 2})
        first.process.kill()
        first.process.wait(DEADLINE)

        with serving(store, "--port", str(first.port), HOLDFAST_TOKEN=TOKEN):
            loaded = [
                modern.result("agent_load", agent_id="b")["state"],
                legacy.result("agent_load", agent_id="a")["state"],
            ]

    assert loaded == [{"n": 2}, {"n": 1}]


def test_a_lost_connection_is_resumed_if_the_server_keeps_sessions(tmp_path):
    store = tmp_path / "store.db"
    with serving(store, "--resumable") as served:
        session = Session(served.port, authorization=f"Bearer {served.token}")
        with session.call("agent_save", {"agent_id": "a"}) as answer:
            last, _ = next(messages(answer))  # only the id to resume after
        with session.resumed(last) as answer:
            [(_, told)] = messages(answer)
        with over_http(served, "auto") as modern, over_http(served, "legacy") as legacy:
            for client in (modern, legacy):
                assert client.result("agent_load", agent_id="a")["agent_id"] == "a"

    assert told["result"]["structuredContent"]["agent_id"] == "a"
