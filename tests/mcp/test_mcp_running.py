"""A server's life: how it starts, whom it serves, how it ends, and what stays."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from served import (
    DEADLINE,
    Plain,
    command,
    environment,
    over_http,
    over_stdio,
    refused,
    serving,
)

import holdfast
from holdfast.tools import TOOLS
from inner.tools import STORE_TOOLS
from support import databases, servers
from support.folders import PROGRAMS
from support.programs import ENVIRONMENT

pytestmark = pytest.mark.processes

HOLDER = str(PROGRAMS / "hold_lock.py")
READING = [tool.name for tool in (*TOOLS, *STORE_TOOLS) if tool.read_only]


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "store.db")


# --- the protocol by hand -------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with Plain(tmp_path_factory.mktemp("plain") / "store.db") as found:
        found.greeting = found.greet()
        yield found


def kinds_of_long_answer(plain):
    plain.call("agent_save", agent_id="long", state={"notes": "x" * 50_000})
    answer = plain.call("agent_load", agent_id="long")
    return [content["type"] for content in answer["content"]]


def test_a_client_is_told_who_serves_it_and_how_to_begin(plain):
    about = {"name": "holdfast", "version": holdfast.__version__}

    assert plain.greeting["serverInfo"] == about
    assert "agent_list, conversation_list" in plain.greeting["instructions"]
    assert plain.greeting["capabilities"].keys() >= {"tools", "resources"}


def test_links_are_given_to_clients_that_know_them(plain, store):
    with Plain(store) as old:
        old.greet("2024-11-05")

        assert kinds_of_long_answer(old) == ["text"]

    assert kinds_of_long_answer(plain) == ["text", "resource_link"]


def test_nonsense_is_answered_or_passed_over_and_the_server_goes_on(plain):
    plain.process.stdin.write('this is no JSON\n[1, 2]\n{"jsonrpc": "2.0"}\n\n')

    text = plain.ask("tools/call", name="agent_load", arguments="planner")
    listed = plain.ask("tools/call", name="agent_load", arguments=["planner"])
    nothing = plain.ask("tools/call", name="agent_load", arguments=None)
    unknown = plain.ask("prompts/list")
    fine = plain.call("agent_list", type="nothing")

    assert "has no argument 'arguments'" in text["result"]["content"][0]["text"]
    assert "The arguments are agent_id" in listed["result"]["content"][0]["text"]
    assert "agent_id is missing" in nothing["result"]["content"][0]["text"]
    assert unknown["error"]["code"] == -32601
    assert fine["structuredContent"] == {"agents": [], "cursor": None}


# --- how it ends ----------------------------------------------------------------------


def hang_up(process):
    process.stdin.close()


def terminate(process):
    process.send_signal(signal.SIGTERM)


def interrupt(process):
    process.send_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("end", "expected"), [(hang_up, 0), (terminate, 0), (interrupt, 130)]
)
def test_it_ends_when_told_to_with_the_store_closed(store, end, expected):
    with Plain(store, "--verbose") as plain:
        plain.greet()
        plain.call("agent_save", agent_id="a")

        end(plain.process)
        status, beside, _ = plain.ended()

    assert (status, beside) == (expected, "")
    assert os.path.exists(store)
    assert not os.path.exists(f"{store}-wal")


def test_a_client_that_is_gone_ends_it_quietly(store):
    with Plain(store) as plain:
        plain.greet()
        plain.process.stdout.close()
        plain.send(id=7, method="tools/list")

        status = plain.process.wait(DEADLINE)
        said = plain.process.stderr.read()

    assert (status, said) == (0, "")


def test_what_a_killed_server_has_acknowledged_is_there(store):
    with Plain(store) as plain:
        plain.greet()
        for n in range(200):
            arguments = {"agent_id": "a", "state": {"n": n}}
            params = {"name": "agent_save", "arguments": arguments}
            plain.send(id=100 + n, method="tools/call", params=params)
        answers = [plain.process.stdout.readline() for _ in range(50)]
        plain.process.kill()
        plain.process.wait()

    with holdfast.open(store) as opened:
        verified = opened.verify()
        version = opened.agents.load("a").version
    with over_stdio(store) as remote:
        again = remote.result("agent_save", agent_id="a", state={"n": -1})
    assert all('"isError":false' in answer for answer in answers)
    assert verified.ok
    assert version >= 50
    assert again["version"] == version + 1


# --- whom it serves -------------------------------------------------------------------


def test_several_clients_of_several_servers_share_a_store(store):
    with (
        serving(store) as served,
        over_http(served, "auto") as one,
        over_http(served, "legacy") as two,
        over_stdio(store) as three,
    ):
        names = [f"{n}-{turn}" for n in range(3) for turn in range(10)]

        async def say(client, name):
            message = {"role": "user", "content": name}
            arguments = {"conversation_id": "all", "messages": [message]}
            return await client.call_tool("conversation_save", arguments)

        async def together(client, n):
            mine = [name for name in names if name.startswith(f"{n}-")]
            return await asyncio.gather(*(say(client, name) for name in mine))

        speaking = [
            remote.portal.start_task_soon(together, remote.client, n)
            for n, remote in enumerate((one, two, three))
        ]
        results = [result for task in speaking for result in task.result(DEADLINE)]
        loaded = one.result("conversation_load", conversation_id="all", limit=100)

    assert not [result for result in results if result.is_error]
    assert sorted(m["content"] for m in loaded["messages"]) == sorted(names)


@contextlib.contextmanager
def locked(store):
    """Another connection holds the write lock."""
    with subprocess.Popen(
        [sys.executable, HOLDER, "database", store],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as holder:
        holder.stdout.readline()
        yield
        holder.communicate()


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_call_that_is_cancelled_holds_nothing_up(store, era):
    async def give_up(client):
        with anyio.move_on_after(0.2) as waiting:
            await client.call_tool("agent_save", {"agent_id": "b"})
        return waiting.cancelled_caught

    with over_stdio(store, "--wait", "20", era=era) as remote:
        remote.result("agent_save", agent_id="a")
        with locked(store):
            is_cancelled = remote.do(give_up, remote.client)
            meanwhile = remote.result("agent_load", agent_id="a")
        after = remote.result("agent_save", agent_id="c")

    assert is_cancelled
    assert meanwhile["version"] == 1
    assert after["created"]
    with holdfast.open(store) as opened:
        assert opened.verify().ok


def test_a_store_that_is_held_by_another_is_a_readable_error(store):
    with over_stdio(store, "--wait", "0.1") as remote:
        remote.result("agent_save", agent_id="a")
        with locked(store):
            error, text = remote.error("agent_save", agent_id="b")

    assert error["code"] == "busy"
    assert "call again in a moment" in text


# --- what it serves -------------------------------------------------------------------


def test_read_only_offers_what_reads_and_changes_nothing(store):
    with holdfast.open(store) as opened:
        message = {"role": "user", "content": "Find me a train"}
        opened.conversations.create("c", messages=[message])
    before = Path(store).read_bytes()

    with over_stdio(store, "--read-only") as remote:
        names = [tool.name for tool in remote.tools()]
        error, text = remote.error("agent_delete", agent_id="a")
        found = remote.result("conversation_search", query="train")["matches"]
        told = remote.client.instructions

    assert names == READING
    assert len(names) == 12
    assert error["code"] == "tool_unavailable"
    assert "only reading is allowed" in text
    assert [match["conversation_id"] for match in found] == ["c"]
    assert "nothing changed" in told
    assert Path(store).read_bytes() == before


def test_a_scope_is_served_and_nothing_else(store):
    message = {"role": "user", "content": "Find me a train"}
    with holdfast.open(store) as opened:
        for scope in ("a", "b"):
            opened.scope(scope).conversations.create(f"in-{scope}", messages=[message])
        foreign = opened.scope("b").conversations.thread("in-b").head

    with over_stdio(store, "--scope", "a") as remote:
        found = remote.result("conversation_search", query="train")["matches"]
        error, _ = remote.error("conversation_load", conversation_id="in-b")
        resources = remote.do(remote.client.list_resources).resources
        with pytest.raises(MCPError):
            remote.read(f"holdfast://checkpoint/{foreign.id}")

    assert [match["conversation_id"] for match in found] == ["in-a"]
    assert error["code"] == "not_found"
    assert [resource.name for resource in resources] == ["conversation:in-a"]


def test_a_store_that_is_not_there_is_not_made_to_be_read(store, capsys):
    status, said = refused(capsys, store, "--read-only")

    assert status == 3
    assert "does not exist" in said
    assert not os.path.exists(store)


def test_only_the_tools_that_were_named_are_offered(store):
    with over_stdio(store, "--tools", "agent_save, agent_list") as remote:
        names = [tool.name for tool in remote.tools()]
        _, text = remote.error("agent_load", agent_id="a")
        capabilities = remote.client.server_capabilities

    assert names == ["agent_save", "agent_list"]
    assert "it was not offered" in text
    # A checkpoint would show what these tools do not.
    assert capabilities.resources is None


def test_a_tool_that_is_not_there_cannot_be_offered(store, capsys):
    status, said = refused(capsys, store, "--tools", "agent_lod")

    assert status == 2
    assert "--tools: there is no tool 'agent_lod'. Did you mean 'agent_load'" in said
    assert not os.path.exists(store)


@contextlib.contextmanager
def in_a_folder(tmp_path):
    yield f"dir:{tmp_path / 'folder'}"


@contextlib.contextmanager
def on_postgres(tmp_path):
    with databases.database(servers.shared(servers.NAMES[-1])) as url:
        yield url


@pytest.mark.parametrize("place", [in_a_folder, on_postgres])
def test_any_backend_can_be_served(place, tmp_path):
    with place(tmp_path) as address, over_stdio(address) as remote:
        message = {"role": "user", "content": "Find me a train"}
        remote.result("agent_save", agent_id="a", state={"n": 1})
        remote.result(
            "conversation_save", conversation_id="c", agent_id="a", messages=[message]
        )
        remote.result("checkpoint_create", agent_id="a", name="before")
        remote.result("agent_save", agent_id="a", state={"n": 2})

        found = remote.result("conversation_search", query="TRAIN")["matches"]
        remote.result("checkpoint_restore", agent_id="a", checkpoint="before")
        loaded = remote.result("agent_load", agent_id="a")["state"]

    assert len(found) == 1
    assert loaded == {"n": 1}


def test_without_the_extra_the_command_to_install_it_is_named(store):
    program = (
        "import sys; sys.modules['mcp'] = None; from holdfast.cli import main;"
        " sys.exit(main(sys.argv[1:]))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program, *command(store)[3:]],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (6, "")
    assert "pip install 'holdfast[mcp]'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_without_the_extra_the_list_of_commands_is_still_printed():
    program = (
        "import sys; sys.modules['mcp'] = None; from holdfast.cli import main;"
        " sys.exit(main(['--help']))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Serve the agent tools" in ran.stdout
