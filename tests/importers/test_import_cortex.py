"""Importing the checkpoints of cortex."""

import pytest

from holdfast.importers import import_from
from support.import_sources import FIXTURES, cortex_back, read, same, source, write

CORTEX = FIXTURES / "cortex"
FIRST, THIRD = (read(CORTEX / f"checkpoint_{n}.json") for n in (1, 3))


def checkpoint(id_, *, step, parent=None, at=1_773_480_000, thread="t", state=None):
    return {
        "metadata": FIRST["metadata"]
        | {"id": id_, "thread_id": thread, "created_at": at}
        | {"parent_id": parent, "step": step, "state_size": 8},
        "state": {"n": step} if state is None else state,
    }


def ids(store, thread="t"):
    return [c.id for c in store.thread(thread).history(None, order="oldest")]


def test_a_folder_of_checkpoints_is_a_thread(memory):
    report = import_from(memory, CORTEX)

    assert report.format == "cortex"
    assert report.found == {"thread-1": 2}
    assert (report.imported.threads, report.imported.checkpoints) == (1, 2)
    assert memory.thread("thread-1").load() == THIRD["state"]
    assert memory.thread("thread-1").load("@~1") == FIRST["state"]


def test_the_checkpoints_can_be_rebuilt_from_the_store(memory):
    import_from(memory, CORTEX)

    assert same(cortex_back(memory), [FIRST, THIRD])


def test_one_file_alone_can_be_imported(memory):
    report = import_from(memory, CORTEX / "checkpoint_3.json")

    assert report.imported.checkpoints == 1
    assert same(cortex_back(memory), [THIRD])


def test_lists_of_metadata_are_reported_as_without_states(memory):
    report = import_from(memory, CORTEX / "list_metadata.json")

    assert [f.reason[:12] for f in report.ignored] == ["has no state"] * 3
    assert report.imported.checkpoints == 0
    assert report.is_complete


def test_a_parent_that_is_not_there_is_named(memory):
    report = import_from(memory, CORTEX)

    assert any("00000012" in note for note in report.inferred)
    missing = [f for f in report.ignored if "elsewhere" not in f.reason]
    assert len(missing) == 1
    assert "00000012" in missing[0].reason


def test_steps_are_those_of_the_source_also_after_a_gap(memory, tmp_path):
    import_from(memory, CORTEX)
    for name, parent, step in (("a", None, 5), ("b", "a", 2), ("c", "b", 2**63)):
        write(tmp_path / f"{name}.json", checkpoint(name, step=step, parent=parent))
    import_from(memory, tmp_path)

    thread = memory.thread("thread-1")
    assert [c.step for c in thread.history()] == [3, 1]
    assert thread.load("@3") == THIRD["state"]
    assert thread.save({}).step == 4
    steps = [c.step for c in memory.thread("t").history(order="oldest")]
    assert steps == [5, 6, 7]
    assert memory.verify().ok


def test_labels_tags_and_custom_values_are_kept(memory, tmp_path):
    about = read(CORTEX / "list_metadata.json")[1]
    write(tmp_path / "two.json", {"metadata": about, "state": [1, 2]})

    import_from(memory, tmp_path)

    saved = memory.thread("thread-1").get("label:before-risky-tool")
    assert saved.tags == ("pinned", "审查")
    assert saved.metadata["owner"] == "alice"
    assert memory.thread("thread-1").load("tag:审查") == [1, 2]


def test_marks_that_cannot_be_ours_are_kept_all_the_same(memory, tmp_path):
    odd = checkpoint("label:x", step=1)
    odd["metadata"] |= {"label": "", "tags": ["", "a", "a"], "later": {"field": None}}
    odd["metadata"]["custom"] = {"imported": "before"}
    write(tmp_path / "odd.json", odd)

    report = import_from(memory, tmp_path)

    assert report.is_complete
    assert same(cortex_back(memory), [odd])


@pytest.mark.parametrize(
    "state", [None, 1, 2.5, "text", [], {"": {}}, {"a": 2**80}, {"$hf.int": "1"}]
)
def test_any_state_comes_back_as_it_is(memory, tmp_path, state):
    whole = {**checkpoint("one", step=1), "state": state}
    write(tmp_path / "one.json", whole)

    import_from(memory, tmp_path)

    assert same(cortex_back(memory), [whole])


def test_1_3_steps_that_began_anew_stand_behind_their_parents(memory, tmp_path):
    chain = [("c", None, 1), ("a", "c", 2), ("d", "a", 1), ("b", "d", 2)]
    for name, parent, step in chain:
        made = checkpoint(name, step=step, parent=parent)
        write(tmp_path / f"{name}.json", made)

    report = import_from(memory, tmp_path)

    assert ids(memory) == ["c", "a", "d", "b"]
    assert not any("is not there" in note for note in report.inferred)


def test_without_parents_steps_decide_within_a_second_and_that_is_said(
    memory, tmp_path
):
    for name, step in (("a", 2), ("b", 1)):
        write(tmp_path / f"{name}.json", checkpoint(name, step=step))

    report = import_from(memory, tmp_path)

    assert ids(memory) == ["b", "a"]
    assert any("same second" in note for note in report.inferred)


def test_parents_that_go_round_in_a_circle_lose_nothing(memory, tmp_path):
    for name, parent in (("a", "b"), ("b", "a"), ("c", "c"), ("d", "b")):
        write(tmp_path / f"{name}.json", checkpoint(name, step=1, parent=parent))

    report = import_from(memory, tmp_path)

    assert report.is_complete
    assert sorted(ids(memory)) == ["a", "b", "c", "d"]


def test_a_size_that_is_wrong_is_reported_and_the_state_taken(memory, tmp_path):
    wrong = checkpoint("one", step=1, state={"n": 1_000_000})
    write(tmp_path / "one.json", wrong)

    report = import_from(memory, tmp_path)

    assert any("not as long as it says" in note for note in report.inferred)
    assert memory.thread("t").load() == {"n": 1_000_000}


def test_1_13_two_checkpoints_of_one_id_are_told_apart(memory, tmp_path):
    write(tmp_path / "1.json", checkpoint("same", step=1))
    write(tmp_path / "2.json", checkpoint("same", step=1))
    write(tmp_path / "3.json", checkpoint("same", step=2))
    write(tmp_path / "4.json", checkpoint("same", step=2, thread="other"))

    report = import_from(memory, tmp_path)

    assert [f.path[-6:] for f in report.ignored] == ["2.json"]
    assert [f.path[-6:] for f in report.damaged] == ["3.json"]
    assert memory.thread("t").load() == {"n": 1}
    assert memory.thread("other").load() == {"n": 2}


def test_a_list_of_whole_checkpoints_is_read_up_to_where_it_is_torn(memory, tmp_path):
    path = write(tmp_path / "list.json", [FIRST, THIRD])
    path.write_text(path.read_text()[:-40])

    report = import_from(memory, path)

    assert report.found == {"thread-1": 1}
    assert len(report.damaged) == 1


def test_a_thread_named_like_a_conversation_does_not_become_one(memory, tmp_path):
    write(tmp_path / "1.json", checkpoint("one", step=1, thread="conversation:x"))

    report = import_from(memory, tmp_path)

    [thread] = memory.threads()
    assert not thread.id.startswith("conversation:")
    assert thread.metadata["imported"]["id"] == "conversation:x"
    assert memory.conversations.find("x") is None
    assert "conversation:x" in report.inferred[0]


def test_files_that_are_no_checkpoints_are_reported(memory, tmp_path):
    folder = source("cortex", tmp_path)
    (folder / "notes.txt").write_text("hello")
    write(folder / "package.json", {"name": "x"})

    report = import_from(memory, folder)

    assert any(f.path.endswith("notes.txt") for f in report.ignored)
    assert [f.path[-12:] for f in report.damaged] == ["package.json"]
    assert report.imported.checkpoints == 2
