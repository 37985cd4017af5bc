"""The page of the recipe does what it says, also with two processes and a kill."""

import signal
import subprocess
import sys

import pytest
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock

import holdfast
from holdfast.cli import main
from support.pages import BLOCK, page_of, printed, shown

PAGE = page_of("llama_index")
CHAT, _, WORKFLOW = [code for code, _ in BLOCK.findall(PAGE.read_text())][:3]

ADDS_FIFTY = """
import sys

with holdfast.open("agents.db") as store:
    for number in range(50):
        said = ChatMessage(role="user", content=f"{sys.argv[1]} {number}")
        HoldfastChatStore(store).add_message("shared", said)
"""

KILLED_IN_ITS_SECOND_STEP = """
import asyncio, os, signal, sys

class Middle(Event):
    made: list

class Two(Workflow):
    @step
    async def first(self, event: StartEvent) -> Middle:
        return Middle(made=[f"first in run {sys.argv[1]}"])

    @step
    async def second(self, event: Middle) -> StopEvent:
        await asyncio.sleep(0)
        while sys.argv[1] == "1":
            await asyncio.sleep(0)
            with holdfast.open("agents.db", read_only=True) as store:
                if store.threads():
                    os.kill(os.getpid(), signal.SIGKILL)
        return StopEvent(result=[*event.made, f"second in run {sys.argv[1]}"])

async def main():
    async with holdfast.open_async("agents.db") as store:
        print(await run(Two(), store.thread("workflow:two", kind="workflow")))

asyncio.run(main())
"""


def ended(folder, code, *arguments):
    program = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        program, cwd=folder, stdout=subprocess.PIPE, text=True, check=False
    )


@pytest.fixture
def chats(place):
    names = {}
    exec(CHAT, names)
    url, options = place
    with holdfast.open(url, **options) as store:
        yield names["HoldfastChatStore"](store)


def test_the_page_prints_what_it_shows(tmp_path):
    assert printed(PAGE, tmp_path) == shown(PAGE)


def test_a_chat_store_does_what_llama_indexs_own_does(chats):
    call = ToolCallBlock(tool_call_id="c1", tool_name="add", tool_kwargs={"a": 1})
    said = [
        ChatMessage(role="user", content="one"),
        ChatMessage(role="assistant", blocks=[call], additional_kwargs={"n": 1.5}),
        ChatMessage(role="tool", content="3", additional_kwargs={"tool_call_id": "c1"}),
    ]
    for key in ("a/b", "a%2Fb", "ü"):
        chats.set_messages(key, said[:1])
        for message in said[1:]:
            chats.add_message(key, message)

    assert chats.get_messages("a/b") == said
    assert sorted(chats.get_keys()) == ["a%2Fb", "a/b", "ü"]
    assert chats.delete_message("a/b", 1) == said[1]
    assert chats.delete_message("a/b", 2) is None
    assert chats.delete_last_message("a/b") == said[2]
    assert chats.delete_messages("a/b") == said[:1]
    assert chats.delete_messages("a/b") is chats.delete_last_message("none") is None
    assert (chats.get_messages("a/b"), chats.get_messages("none")) == ([], [])
    assert sorted(chats.get_keys()) == ["a%2Fb", "ü"]


def test_two_processes_that_add_messages_lose_none(tmp_path, capsys):
    program = [sys.executable, "-c", CHAT + ADDS_FIFTY]
    both = [
        subprocess.Popen([*program, name], cwd=tmp_path) for name in ("left", "right")
    ]

    assert [process.wait() for process in both] == [0, 0]
    assert main(["show", "chat:shared", "--messages", "-C", str(tmp_path)]) == 0
    lines = capsys.readouterr().out
    assert all(f"{name} {n}" in lines for name in ("left", "right") for n in range(50))


def test_a_workflow_that_was_killed_goes_on_in_a_new_process(tmp_path):
    code = f"import holdfast\n{WORKFLOW}\n{KILLED_IN_ITS_SECOND_STEP}"

    killed = ended(tmp_path, code, "1")

    assert killed.returncode == -signal.SIGKILL
    assert ended(tmp_path, code, "2").stdout == (
        "['first in run 1', 'second in run 2']\n"
    )
