"""A real folder saved with a conversation: shell commands, and a killed process."""

import signal
import subprocess
import sys

import pytest

import holdfast
from holdfast import Message, ToolCall
from holdfast.workspace import Workspace

AGENT = """
import os, signal, subprocess, sys
import holdfast
from holdfast import Message, ToolCall
from holdfast.workspace import Workspace

path, folder = sys.argv[1:]

def shell(command):
    return subprocess.run(command, shell=True, cwd=folder, check=True).returncode

store = holdfast.open(path)
recorder = store.conversations.recorder(
    "agent", tools=[shell], workspace=Workspace(folder)
)
recorder.add(Message.user("build it"))
for n, command in enumerate(["echo one > out.txt", "mkdir d; echo two > d/more.txt"]):
    call = ToolCall(id=str(n), name="shell", arguments={"command": command})
    recorder.llm_response(Message.assistant("", tool_calls=[call]))
    recorder.tool_result(call, recorder.call(call))
call = ToolCall(id="x", name="shell", arguments={"command": "rm -r d out.txt"})
recorder.llm_response(Message.assistant("", tool_calls=[call]))
shell("rm -r d out.txt")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(tmp_path):
    """What an agent has left that was killed after its tool, before the result."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "kept.txt").write_text("kept")
    path = str(tmp_path / "store.db")
    ended = subprocess.run(
        [sys.executable, "-c", AGENT, path, str(folder)], check=False
    )
    assert ended.returncode == -signal.SIGKILL
    return path, folder


def test_what_shell_commands_did_is_in_the_checkpoints_of_a_killed_agent(killed):
    path, folder = killed

    with holdfast.open(path) as store:
        chat = store.conversations.thread("agent")
        assert list(chat.files()) == ["d/more.txt", "kept.txt", "out.txt"]
        assert chat.read_file("d/more.txt") == b"two\n"
        assert store.verify().ok
    assert sorted(entry.name for entry in folder.iterdir() if entry.name[0] != ".") == [
        "kept.txt"
    ]


def test_moving_a_thread_touches_no_folder(killed):
    path, folder = killed
    with holdfast.open(path) as store:
        chat = store.conversations.thread("agent")
        chat.fork("other", "@~1")
        chat.rewind("@~1")

    assert (folder / "kept.txt").read_text() == "kept"
    assert not (folder / "out.txt").exists()


def test_the_recorder_goes_on_with_the_folder_as_it_is(killed):
    path, folder = killed
    with holdfast.open(path) as store:
        recorder = store.conversations.recorder("agent", workspace=Workspace(folder))
        [call] = recorder.open_calls
        recorder.tool_result(
            ToolCall(id=call.id, name=call.name, arguments=call.arguments), "done"
        )
        recorder.add(Message.user("thanks"))
        recorder.save()

        assert list(store.conversations.thread("agent").files()) == ["kept.txt"]
