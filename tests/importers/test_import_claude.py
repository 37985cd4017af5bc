"""Importing the transcripts that Claude keeps below its folder."""

import json

import pytest

import holdfast
from holdfast.importers import import_from

SESSION = "6f2c0d4e-9a51-4b7e-8c1d-0f3a5b7c9d11"
NAME = f"claude:-home-ann-atlas/{SESSION}"
TITLE = {"type": "custom-title", "customTitle": "Greeting", "sessionId": SESSION}


def entry(number, role, content):
    return {
        "parentUuid": f"u{number - 1}",
        "type": "user" if role == "user" else "assistant",
        "message": {"role": role, "content": content},
        "uuid": f"u{number}",
        "sessionId": SESSION,
        "timestamp": f"2026-11-16T10:00:{number:02d}.000Z",
    }


RESULT = [{"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}]
MODE = {"type": "mode", "mode": "plan", "sessionId": SESSION}
TURNS = [
    [MODE, entry(1, "user", "hi"), entry(2, "assistant", "hello\u2028there"), TITLE],
    [
        entry(3, "user", "the weather?"),
        entry(4, "user", RESULT),
        entry(5, "assistant", "ok"),
    ],
]

LINES = [line for turn in TURNS for line in turn]


def written(path, entries):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def claude(tmp_path):
    """The folder of Claude, with one session and a subagent."""
    project = tmp_path / "claude" / "projects" / "-home-ann-atlas"
    written(project / f"{SESSION}.jsonl", LINES)
    agents = project / SESSION / "subagents"
    written(agents / "agent-1.jsonl", [entry(1, "user", "look around")])
    (agents / "agent-1.meta.json").write_text('{"agentType": "Explore"}')
    return tmp_path / "claude"


def transcript(claude):
    return claude / "projects" / "-home-ann-atlas" / f"{SESSION}.jsonl"


@pytest.mark.parametrize("below", [".", "projects", "projects/-home-ann-atlas"])
def test_a_session_gets_a_checkpoint_for_each_turn(claude, below, memory):
    report = import_from(memory, claude / below)

    assert (report.format, report.is_complete) == ("claude", True)
    assert report.found == {"-home-ann-atlas": 2}
    thread = memory.thread(NAME)
    steps = [len(thread.load(c)["messages"]) for c in thread.history(order="oldest")]
    assert steps == [2, 5]
    assert thread.load()["messages"] == [*TURNS[0][1:3], *TURNS[1]]
    assert thread.load()["bookkeeping"] == [
        {"after": 0, "entry": MODE},
        {"after": 2, "entry": TITLE},
    ]
    assert "saved_at=2026-11-16T10:00:05.000000Z" in repr(thread.get())
    agent = memory.thread(f"{NAME}/subagents/agent-1").load()
    [about] = agent["bookkeeping"]
    assert about["entry"] == {"agentType": "Explore", "type": "agent_metadata"}
    assert [t.kind for t in memory.threads()] == ["claude-session", "claude-subagent"]


def test_a_file_is_imported_by_itself_and_again_when_it_has_grown(claude, memory):
    path = transcript(claude)
    import_from(memory, path)
    again = import_from(memory, path)
    written(path, [*LINES, entry(6, "user", "bye")])
    grown = import_from(memory, path)

    assert again.imported.checkpoints == 0
    assert grown.imported.checkpoints == 1
    assert memory.thread(NAME).tail("messages", 1) == [entry(6, "user", "bye")]
    [found] = memory.search("weather")
    assert (found.thread, found.role) == (NAME, "user")


def test_a_line_that_a_crash_cut_is_reported_and_the_others_are_imported(
    claude, memory
):
    path = transcript(claude)
    path.write_bytes(path.read_bytes() + b'[1]\n{"a": "\xe9"}\n{"type": "user", "uu')

    report = import_from(memory, path)

    damaged = [finding.reason[:7] for finding in report.damaged]
    assert damaged == ["line 8:", "line 9:", "line 10"]
    assert len(memory.thread(NAME).load()["messages"]) == 5


def test_other_lines_of_json_are_no_transcript(tmp_path, memory):
    path = written(tmp_path / "events.jsonl", [{"type": "click", "at": 1}])

    with pytest.raises(holdfast.FormatMismatch):
        import_from(memory, path)
    report = import_from(memory, path, format="claude")
    [ignored] = report.ignored
    assert (ignored.path, ignored.reason) == (str(path), "is no transcript of Claude")
