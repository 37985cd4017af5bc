"""Real deep agents, with a scripted model, that write and edit files."""

import asyncio

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from adapters.deepagents.scripted import agent, asked, call, results
from holdfast.adapters.deepagents import (
    HoldfastBackend,
    HoldfastFolder,
    HoldfastShell,
)
from holdfast.cli import main
from holdfast.errors import Unsupported
from holdfast.workspace import Workspace


def config(thread):
    return {"configurable": {"thread_id": thread}}


def test_a_rewind_brings_the_files_of_an_agent_back(store):
    backend = HoldfastBackend(store)
    made = agent(
        backend,
        call("write_file", file_path="/plan.md", content="go to Rome\nby train\n"),
        call("edit_file", file_path="/plan.md", old_string="Rome", new_string="Pisa"),
        call("write_file", file_path="/src/a.py", content="x = 1\n"),
        call("read_file", file_path="/plan.md"),
        call("grep", pattern="train", output_mode="content"),
        call("glob", pattern="*.py"),
        call("ls", path="/"),
        call("delete", file_path="/src"),
    )

    said = results(made.invoke(asked(), config("trip")))

    assert "go to Pisa" in said[3]
    assert "/plan.md" in said[4]
    assert "/src/a.py" in said[5]
    assert "/src/" in said[6]
    files = backend.of("trip")
    thread = files.thread
    assert thread.id == "deepagents:trip"
    assert [each.metadata["deepagents"] for each in thread.history()] == [
        "delete /src",
        "write /src/a.py",
        "edit /plan.md",
        "write /plan.md",
    ]

    thread.rewind("@1")
    again = agent(backend, call("read_file", file_path="/plan.md"))
    assert "go to Rome" in results(again.invoke(asked(), config("trip")))[0]


def test_conversations_have_files_of_their_own_and_share_named_ones(filed):
    write = call("write_file", file_path="/a", content="mine")
    for thread in ("one", "two"):
        made = agent(HoldfastBackend(filed), write, checkpointer=InMemorySaver())
        asyncio.run(made.ainvoke(asked(), config(thread)))
    agent(HoldfastBackend(filed, "shared"), write).invoke(asked())

    names = {thread.id for thread in filed.threads(kind="deepagents")}
    assert names == {"deepagents:one", "deepagents:two", "shared"}
    with pytest.raises(Unsupported, match="name a thread"):
        HoldfastBackend(filed).ls("/")


def test_the_model_is_told_what_failed_and_goes_on(filed):
    made = agent(
        HoldfastBackend(filed, "notes"),
        call("edit_file", file_path="/none", old_string="a", new_string="b"),
        call("read_file", file_path="/none"),
    )

    said = results(made.invoke(asked()))

    assert all("not found" in text for text in said)
    assert filed.thread("notes").head is None


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "main.py").write_text("print('hello')\n")
    return folder


def test_what_a_command_did_to_a_folder_is_restored(filed, project):
    workspace, thread = Workspace(project), filed.thread("coder")
    thread.save({"task": "greet"}, files=workspace)
    made = agent(
        HoldfastShell(thread, workspace, inherit_env=True),
        call("execute", command="sed -i s/print/prin/ main.py; touch new"),
        call("execute", command="cat main.py"),
    )

    said = results(made.invoke(asked()))

    assert "prin('hello')" in said[1]
    # The second command changed nothing.
    assert [each.step for each in thread.history()] == [2, 1]
    assert thread.load() == {"task": "greet"}
    workspace.restore(thread, "@1")
    assert (project / "main.py").read_text() == "print('hello')\n"
    assert not (project / "new").exists()
    workspace.undo(thread)
    assert (project / "new").exists()


def test_a_folder_is_saved_after_each_change(filed, project):
    workspace, thread = Workspace(project), filed.thread("coder")
    folder = HoldfastFolder(thread, workspace)

    folder.write("/notes.txt", "todo")
    folder.edit("/main.py", "hello", "hi")
    folder.edit("/main.py", "nowhere", "hi")
    folder.upload_files([("/data/x", b"\0")])
    asyncio.run(folder.adelete("/notes.txt"))

    assert not hasattr(folder, "execute")
    steps = [list(thread.files(each)) for each in thread.history()]
    assert steps == [
        ["data/x", "main.py"],
        ["data/x", "main.py", "notes.txt"],
        ["main.py", "notes.txt"],
        ["main.py", "notes.txt"],
    ]
    assert thread.read_file("main.py") == b"print('hi')\n"


def test_a_command_line_shows_what_an_agent_wrote(filed, tmp_path, capfd):
    HoldfastBackend(filed, "notes").write("/a/plan.md", "by train\n")
    filed.close()

    main(["--store", str(tmp_path / "agents.db"), "show", "notes@1:a/plan.md"])

    assert capfd.readouterr().out == "by train\n"
