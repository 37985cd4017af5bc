"""The SDK's own `query` and functions over a store, with a scripted command line."""

import asyncio
import json
import shutil
import sys
from pathlib import Path

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ResultMessage,
    delete_session_via_store,
    fork_session_via_store,
    get_session_info_from_store,
    get_session_messages_from_store,
    get_subagent_messages_from_store,
    import_session_to_store,
    list_sessions_from_store,
    list_subagents_from_store,
    project_key_for_directory,
    query,
    rename_session_via_store,
    tag_session_via_store,
)

from adapters.claude_agent_sdk import scripted_cli
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore


class Claude:
    """The SDK over a store; what the command line keeps itself can be lost."""

    def __init__(self, sessions, folder):
        self.sessions, self.config = sessions, folder / "config"
        self.folder = folder / "project"
        self.folder.mkdir()
        self.cli = folder / "claude"
        self.cli.write_text(
            f'#!/bin/sh\nexec {sys.executable} {scripted_cli.__file__} "$@"\n'
        )
        self.cli.chmod(0o755)

    async def ask(self, prompt, **options):
        """The last message of a run, and the others."""
        options = ClaudeAgentOptions(
            cli_path=self.cli,
            cwd=str(self.folder),
            env={"CLAUDE_CONFIG_DIR": str(self.config)},
            session_store=self.sessions,
            **options,
        )
        *others, last = [
            message async for message in query(prompt=prompt, options=options)
        ]
        assert isinstance(last, ResultMessage)
        assert not [m for m in others if type(m).__name__ == "MirrorErrorMessage"]
        return last

    def lose_local_files(self):
        shutil.rmtree(self.config)

    @property
    def project(self):
        return project_key_for_directory(self.folder)


@pytest.fixture
def claude(sessions, tmp_path):
    return Claude(sessions, tmp_path)


def test_a_session_goes_on_although_the_local_files_are_lost(claude):
    async def body():
        first = await claude.ask("hello, delegate this")
        claude.lose_local_files()
        second = await claude.ask("and now?", resume=first.session_id)
        third = await claude.ask("still there?", continue_conversation=True)
        assert [r.result for r in (first, second, third)] == [
            "1 prompts",
            "2 prompts",
            "3 prompts",
        ]
        assert first.session_id == second.session_id == third.session_id

        key = {"project_key": claude.project, "session_id": first.session_id}
        entries = await claude.sessions.load(key)
        assert [entry["type"] for entry in entries] == ["user", "assistant"] * 3
        assert await claude.sessions.list_subkeys(key) == ["subagents/agent-1"]
        assert (await claude.sessions.thread(key).get()).step == 3

    asyncio.run(body())


@pytest.mark.parametrize("place", ["file"], indirect=True)
@pytest.mark.parametrize("flush", ["batched", "eager"])
def test_every_line_is_mirrored_once(claude, flush):
    async def body():
        told = await claude.ask("hello", session_store_flush=flush)
        directory = str(claude.folder)
        await import_again(claude, told.session_id)
        return await get_session_messages_from_store(
            claude.sessions, told.session_id, directory=directory
        )

    messages = asyncio.run(body())

    assert [message.type for message in messages] == ["user", "assistant"]


async def import_again(claude, session):
    """What the SDK offers to fill gaps; here there are none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(claude.config))
        await import_session_to_store(session, claude.sessions)
    key = {"project_key": claude.project, "session_id": session}
    local = Path(claude.config, "projects", claude.project, f"{session}.jsonl")
    assert len(await claude.sessions.load(key)) == len(local.read_text().splitlines())


def test_the_functions_of_the_sdk_work_over_the_store(claude):
    sessions, where = claude.sessions, {"directory": str(claude.folder)}

    async def body():
        told = await claude.ask("a first question, delegate it")
        id_ = told.session_id
        await claude.ask("a second question", resume=id_)
        await rename_session_via_store(sessions, id_, "Questions", **where)
        await tag_session_via_store(sessions, id_, "done", **where)
        messages = await get_session_messages_from_store(sessions, id_, **where)
        fork = await fork_session_via_store(
            sessions, id_, up_to_message_id=messages[1].uuid, title="What if", **where
        )

        listed = await list_sessions_from_store(sessions, **where)
        assert [(one.session_id, one.summary, one.tag) for one in listed] == [
            (fork.session_id, "What if", None),
            (id_, "Questions", "done"),
        ]
        for one in listed:
            info = await get_session_info_from_store(sessions, one.session_id, **where)
            assert (info.summary, info.tag) == (one.summary, one.tag)
            assert one.first_prompt == "a first question, delegate it"
        forked = await get_session_messages_from_store(
            sessions, fork.session_id, **where
        )
        assert [len(messages), len(forked)] == [4, 2]
        assert await list_subagents_from_store(sessions, id_, **where) == ["1"]
        of_agent = await get_subagent_messages_from_store(sessions, id_, "1", **where)
        assert [one.message["content"] for one in of_agent] == ["look around"]

        assert (await claude.ask("go on", resume=fork.session_id)).result == "2 prompts"
        await delete_session_via_store(sessions, id_, **where)
        left = await list_sessions_from_store(sessions, **where)
        assert [one.session_id for one in left] == [fork.session_id]

    asyncio.run(body())


@pytest.mark.parametrize("place", ["file"], indirect=True)
def test_a_session_goes_on_from_a_rewind_and_from_a_fork_of_the_store(claude):
    async def body():
        told = await claude.ask("one")
        await claude.ask("two", resume=told.session_id)
        key = {"project_key": claude.project, "session_id": told.session_id}
        other = {**key, "session_id": "7a3d1e5f-0b62-4c8f-9d2e-1a4b6c8d0e22"}
        thread = claude.sessions.thread(key)
        await thread.fork(claude.sessions.thread(other).id)
        await thread.rewind("@~1")
        claude.lose_local_files()

        rewound = await claude.ask("two again", resume=told.session_id)
        forked = await claude.ask("three", resume=other["session_id"])

        assert (rewound.result, forked.result) == ("2 prompts", "3 prompts")

    asyncio.run(body())


def test_what_was_imported_looks_like_what_was_mirrored_and_goes_on(claude, store):
    where = {"directory": str(claude.folder)}

    async def mirrored():
        told = await claude.ask("one, delegate it")
        await claude.ask("two", resume=told.session_id)
        key = {"project_key": claude.project, "session_id": told.session_id}
        return key, await described(claude.sessions, key)

    async def described(sessions, key):
        infos = await list_sessions_from_store(sessions, **where)
        keys = [key, *({**key, "subpath": s} for s in await sessions.list_subkeys(key))]
        entries = [await sessions.load(one) for one in keys]
        return [(one.session_id, one.summary) for one in infos], keys, entries

    async def imported(sessions, key, found):
        assert await described(sessions, key) == found
        told = await claude.ask("three", resume=key["session_id"])
        assert told.result == "3 prompts"
        await sessions.append(key, await sessions.load(key))
        assert len(await sessions.load(key)) == 6
        [summary] = await sessions.list_session_summaries(claude.project)
        assert summary["data"]["first_prompt"] == "one, delegate it"

    key, found = asyncio.run(mirrored())
    folder = write_lines(claude, found[1], found[2])
    other = store.scope("other")
    report = other.import_from(folder)
    assert (report.format, report.is_complete) == ("claude", True)
    claude.sessions = HoldfastSessionStore(other)
    asyncio.run(imported(claude.sessions, key, found))


def write_lines(claude, keys, transcripts):
    """The folder in which Claude would keep transcripts."""
    folder = claude.config.with_name("elsewhere") / "projects"
    for key, entries in zip(keys, transcripts, strict=True):
        parts = (
            key["project_key"],
            key["session_id"],
            *key.get("subpath", "").split("/"),
        )
        path = folder.joinpath(*filter(None, parts)).with_suffix(".jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder


@pytest.mark.parametrize("place", ["memory"], indirect=True)
def test_file_checkpoints_of_the_sdk_are_refused_by_the_sdk(claude):
    with pytest.raises(ValueError, match="enable_file_checkpointing"):
        asyncio.run(claude.ask("hello", enable_file_checkpointing=True))
