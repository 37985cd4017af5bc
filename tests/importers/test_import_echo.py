"""Importing the files of echo."""

import json

import pytest

from holdfast.importers import import_from
from support.import_sources import (
    EXPECTED,
    FIXTURES,
    echo_back,
    read,
    same,
    source,
    write,
)

ECHO = FIXTURES / "echo_state"
ALICE = "user-alice-session-1"


def reasons(findings):
    return [finding.reason for finding in findings]


def test_every_session_is_counted_and_every_checkpoint_saved(memory):
    report = import_from(memory, ECHO / "checkpoints.json")

    assert report.format == "echo"
    assert report.found == EXPECTED["echo_state"]
    assert report.imported.conversations == 3
    assert report.imported.checkpoints == 6
    assert report.imported.messages == 10
    assert report.is_complete


def test_the_file_can_be_rebuilt_from_the_store(memory):
    import_from(memory, ECHO / "checkpoints.json")

    whole = {k: v for k, v in read(ECHO / "checkpoints.json").items() if v}
    assert same(echo_back(memory), whole)


def test_checkpoints_keep_their_order_ids_and_times(memory):
    import_from(memory, ECHO / "checkpoints.json")

    history = memory.conversations.thread(ALICE).history()
    assert [c.id[:8] for c in history] == ["00000003", "00000002", "00000001"]
    assert [c.saved_at for c in history] == [
        1_773_480_007_000_000,
        1_773_480_000_000_000,
        1_773_480_000_000_000,
    ]


def test_a_backup_copy_gives_what_was_cleaned_up_and_no_head(memory, tmp_path):
    whole = read(ECHO / "checkpoints.json")
    old, *rest = whole[ALICE]
    write(tmp_path / "checkpoints.json", {ALICE: rest})
    write(tmp_path / "copy of checkpoints.json", {ALICE: [old, rest[0]]})

    report = import_from(memory, tmp_path)

    thread = memory.conversations.thread(ALICE)
    assert (thread.get().id[:8], thread.step) == ("00000003", 3)
    assert any("copy of checkpoints.json;" in note for note in report.inferred)


def test_a_checkpoint_that_names_another_in_its_metadata_is_whole(memory, tmp_path):
    [record] = read(ECHO / "checkpoints.json")[ALICE][:1]
    named = record | {"metadata": {"checkpoint_id": "another"}}
    write(tmp_path / "checkpoints.json", {ALICE: [named]})

    report = import_from(memory, tmp_path / "checkpoints.json")

    assert report.is_complete
    assert same(echo_back(memory), {ALICE: [named]})


def test_a_session_is_a_conversation_one_can_go_on_with(memory):
    import_from(memory, ECHO / "checkpoints.json")

    chat = memory.conversations.load(ALICE)
    assert chat.summary == "Weather in Zürich was asked and answered."
    assert chat.metadata["tokens"] == 18_446_744_073_709_551_615
    assert chat.message_count == 7
    memory.conversations.add(ALICE, {"role": "assistant", "content": "Gladly"})
    assert memory.conversations.list().items[0].exchanges == 2


def test_files_of_0_1_0_without_three_fields_are_read(memory):
    path = ECHO / "checkpoints_legacy_0_1_0.json"

    report = import_from(memory, path)

    assert report.found == {"legacy-session": 2}
    absent = {"parent_checkpoint_id": None, "summary": None, "metadata": None}
    whole = {k: [c | absent for c in v] for k, v in read(path).items()}
    assert same(echo_back(memory), whole)


def test_of_a_torn_file_everything_before_the_tear_is_saved(memory):
    report = import_from(memory, ECHO / "checkpoints_torn.json")

    [damage] = report.damaged
    assert "torn or damaged at character" in damage.reason
    assert damage.path.endswith("checkpoints_torn.json")
    assert report.found == {ALICE: 2}
    assert memory.conversations.load(ALICE).message_count == 6


def test_0_1_a_file_that_cannot_be_parsed_is_left_as_it_is(memory, tmp_path):
    path = tmp_path / "checkpoints.json"
    path.write_text('{"a": [garbage')

    report = import_from(memory, path, format="echo")

    assert "torn or damaged" in report.damaged[-1].reason
    assert report.imported.checkpoints == 0
    assert path.read_text() == '{"a": [garbage'


@pytest.mark.parametrize(
    "text", ['{"a": [], 1: []}', '{"a": []} more', '{"a": []', '{"a": {}}', "[]", '"']
)
def test_a_text_of_another_shape_is_named_where_it_begins(memory, tmp_path, text):
    path = tmp_path / "checkpoints.json"
    path.write_text(text)

    report = import_from(memory, path, format="echo")

    assert "torn or damaged at character" in report.damaged[0].reason


@pytest.mark.parametrize(
    "damage",
    [
        '{"role": }',
        '"text"',
        '{"messages": NaN}',
        "[" * 5000 + "]" * 5000,
        "7",
        "\udcff",
    ],
)
def test_0_2_one_bad_checkpoint_of_a_hundred_loses_no_other(memory, tmp_path, damage):
    good = read(ECHO / "checkpoints.json")[ALICE][0]
    texts = [json.dumps(good | {"checkpoint_id": f"c{n}"}) for n in range(100)]
    texts[50] = damage
    path = tmp_path / "checkpoints.json"
    text = '{"%s": [%s], "other": []}' % (ALICE, ",".join(texts))  # noqa: UP031
    path.write_bytes(text.encode(errors="surrogateescape"))

    report = import_from(memory, path)

    [found] = report.damaged
    assert found.reason.startswith(f"checkpoint 51 of session '{ALICE}'")
    assert report.found == {ALICE: 99, "other": 0}
    assert memory.conversations.thread(ALICE).step == 99


def checkpoint_texts(session, count):
    good = read(ECHO / "checkpoints.json")[ALICE][0]
    names = {"session_id": session, "metadata": {"checkpoint_id": "of another"}}
    return [
        json.dumps(good | names | {"checkpoint_id": f"{session} {n}"})
        for n in range(count)
    ]


@pytest.mark.parametrize(
    "damage",
    [
        '{"session_id": "first", "checkpoint_id": "never closed',
        '{"session_id": "first", "messages": [{"role": "user"',
        '{"session_id": "first", "messages": []}}',
        '"a text that is not closed',
        "]",
        "}",
        "{} {}",
        '{"checkpoint_id": "x", "created_at": 1, "metadata": {"summary": [',
        '{"a": "}',
        "\\",
        "",
    ],
)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_0_2_whatever_damages_one_entry_loses_none_after_it(
    memory, tmp_path, damage, place
):
    first, second = checkpoint_texts("first", 5), checkpoint_texts("second", 3)
    first[place] = damage
    path = tmp_path / "checkpoints.json"
    path.write_text(f'{{"first": [{",".join(first)}], "second": [{",".join(second)}]}}')
    before = path.read_bytes()

    report = import_from(memory, path, format="echo")

    assert report.damaged
    assert report.ignored == ()
    assert report.found == {"first": 4, "second": 3}
    for name, count in (("first", 5), ("second", 3)):
        history = memory.conversations.thread(name).history(order="oldest")
        assert [checkpoint.id for checkpoint in history] == [
            f"{name} {n}" for n in range(count) if (name, n) != ("first", place)
        ]
    assert path.read_bytes() == before


@pytest.mark.parametrize("value", ["{}", "7", "[[]", '"x', "null", "{]"])
def test_a_session_that_is_no_list_loses_no_session_after_it(memory, tmp_path, value):
    texts = ",".join(checkpoint_texts("second", 3))
    path = tmp_path / "checkpoints.json"
    path.write_text(f'{{"first": {value}, "second": [{texts}]}}')

    report = import_from(memory, path, format="echo")

    assert "torn or damaged" in report.damaged[-1].reason
    assert memory.conversations.thread("second").step == 3


def test_what_an_interrupted_write_left_over_is_named_and_not_read(memory, tmp_path):
    path = source("echo", tmp_path)
    for name in ("checkpoints.json.tmp", "other.tmp.leftover"):
        (tmp_path / name).write_bytes(
            (ECHO / "checkpoints.json.tmp.leftover").read_bytes()
        )

    of_file = import_from(memory, path)
    of_folder = import_from(memory, tmp_path)

    assert [f.path for f in of_file.ignored] == [f"{path}.tmp"]
    assert "interrupted write" in of_file.ignored[0].reason
    assert len(of_folder.ignored) == 2
    assert of_folder.already_there.checkpoints == 6
    assert of_folder.is_complete


def test_fields_of_other_versions_and_odd_values_are_kept(memory, tmp_path):
    original = read(ECHO / "checkpoints.json")[ALICE][2]
    odd = original | {
        "checkpoint_id": "@odd",
        "parent_checkpoint_id": "00000002",
        "metadata": ["not", {"an": "object"}],
        "session_id": "another",
        "budget": {"left": 3, "none": None},
    }
    path = write(tmp_path / "checkpoints.json", {"one": [odd]})

    report = import_from(memory, path)

    assert report.is_complete
    assert same(echo_back(memory), {"one": [odd]})
