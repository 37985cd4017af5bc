"""Files that were torn, damaged or replaced: nothing is lost or believed in silence."""

import json
import os
import random
import re
import shutil
import warnings

import pytest
from msgspec import Raw
from xxhash import xxh3_64_hexdigest

import holdfast
from holdfast import Corrupt, HoldfastError, NotFound, Retention
from holdfast.backends import run
from holdfast.testing.faults import Fault, FaultyDisk, Platter, io_error, kill
from holdfast.testing.trials.children import Child
from holdfast.testing.trials.damage import ReadOutcome, build_more, truth_of
from holdfast.testing.trials.scenario import (
    STEPS,
    Source,
    address,
    build_for,
    copy_folder,
    dump,
    goes_on,
    problems_of,
)
from inner.directory import (
    FIRST,
    EntryPart,
    LineContent,
    LineEncoder,
    MarkPart,
    MovePart,
    Position,
    scan_file,
)
from support.damage import DAMAGES, missing_from
from support.effort import FLIPS, seed_of
from support.file_clock import next_tick
from support.stores import backend_of

WORK = ".holdfast"
FOLDER = "dir:store"
FOLDERS = FLIPS // 8


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def url(folder):
    return f"dir:{folder}"


def save_some(url, name="chat", count=5):
    with holdfast.open(url) as store:
        for n in range(count):
            store.thread(name).save({"n": n, "text": f"text {n} " * 100})


# --- torn -----------------------------------------------------------------------------


def test_a_torn_last_line_is_cut_off_kept_and_reported(url, folder):
    save_some(url)
    path = folder / "chat-1.jsonl"
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    path.write_bytes(whole + last[:100])

    with pytest.warns(
        RuntimeWarning, match=r"chat-1\.jsonl ended in 100 bytes"
    ) as told:
        store = holdfast.open(url)

    with store:
        assert store.thread("chat").load()["n"] == 4
        assert path.read_bytes() == whole
        assert problems_of(store) == []
        assert goes_on(store) is None
    kept = re.search(r"kept in (\S+)$", str(told[0].message))[1]
    with open(kept, "rb") as file:
        assert file.read() == last[:100]


def test_a_torn_last_line_is_passed_over_by_readers(url, folder):
    save_some(url)
    path = folder / "chat-1.jsonl"
    path.write_bytes(path.read_bytes() + b'{"bytes":12,"che')
    before = path.read_bytes()

    with holdfast.open(url, read_only=True) as store:
        assert store.thread("chat").load()["n"] == 4
        assert problems_of(store) == []

    assert path.read_bytes() == before


def test_without_an_index_only_what_is_no_line_at_all_counts_as_torn(url, folder):
    save_some(url)
    path = folder / "chat-1.jsonl"
    whole = path.read_bytes()
    shutil.rmtree(folder / WORK)
    path.write_bytes(whole[:-7])

    with pytest.warns(RuntimeWarning, match="was never finished"):
        store = holdfast.open(url)

    with store:
        assert store.thread("chat").load()["n"] == 3
        assert problems_of(store) == []


def test_a_last_line_that_was_acknowledged_is_not_taken_for_torn(url, folder):
    save_some(url)
    path = folder / "chat-1.jsonl"
    shortened = path.read_bytes()[:-7]
    path.write_bytes(shortened)

    with holdfast.open(url) as store:
        with pytest.raises(Corrupt, match=r"chat-1\.jsonl"):
            store.thread("chat").load()
        assert len(problems_of(store)) == 1
        store.salvage(str(folder) + ".db")

    assert path.read_bytes() == shortened
    with holdfast.open(str(folder) + ".db") as saved:
        assert saved.thread("chat").load()["n"] == 4


def test_a_line_that_only_lacks_its_end_is_whole(url, folder):
    save_some(url)
    path = folder / "chat-1.jsonl"
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))

    with holdfast.open(url) as store:
        assert store.thread("chat").load()["n"] == 4
        store.thread("chat").save({"n": 5})
        assert problems_of(store) == []

    assert path.read_bytes().count(b"\n") == 6


def lines_of(*transactions):
    """The bytes of a file of transactions with so many lines each, and their ends."""
    writer, data, ends = LineEncoder(), b"", [0]
    for count in transactions:
        for number in range(1, count + 1):
            part = LineContent(family=1, part=(number, count) if count > 1 else None)
            data += b"".join(writer.encode([part]))
        ends.append(len(data))
    return data, ends


def pieces(data):
    return data.splitlines(keepends=True)


def known_end(data):
    return scan_file(pieces(data)).end


@pytest.mark.parametrize("count", [1, 3])
def test_wherever_a_transaction_is_torn_it_is_cut_off_as_a_whole(count):
    data, ends = lines_of(1, 2, count)
    known = known_end(data[: ends[1]])

    for size in range(ends[2], len(data)):
        found = scan_file(pieces(data[:size]), known)

        is_complete = size == len(data) - 1
        assert found.solid.end == (len(data) if is_complete else ends[2])
        assert found.is_whole == (is_complete or size == ends[2])
        assert found.is_known
        assert found.is_torn


@pytest.mark.parametrize("count", [1, 3])
def test_whatever_is_missing_of_the_last_transaction_it_counts_as_torn(count):
    data, ends = lines_of(1, 2, count)
    known = known_end(data[: ends[1]])

    for start in range(ends[2], len(data), 16):
        holed = data[:start] + bytes(16) + data[start + 16 :]
        found = scan_file(pieces(holed[: len(data)]), known)

        assert not found.is_whole
        assert found.is_torn
        assert found.solid.end == ends[2]


def test_damage_before_another_transaction_does_not_count_as_torn():
    data, ends = lines_of(1, 1, 1, 3)
    known = known_end(data[: ends[1]])

    for start in range(0, ends[3] - 16, 16):
        found = scan_file(pieces(data[:start] + bytes(16) + data[start + 16 :]), known)

        assert not found.is_whole
        assert not found.is_torn


def test_a_line_that_is_missing_or_twice_there_is_noticed():
    data, _ = lines_of(1, 1, 1)
    first, second, third = pieces(data)

    for wrong in ([first, third], [first, second, second, third], [second, third]):
        found = scan_file(wrong)

        assert not found.is_whole
        assert "the line before it is missing" in found.damage
        assert not scan_file(wrong, Position()).is_torn


def test_a_save_to_a_file_made_just_before_the_power_fails_is_whole_or_gone(tmp_path):
    platter = Platter(str(tmp_path), sector=512)
    disk = FaultyDisk("power", syncing=False, platter=platter)
    chance = random.Random(seed_of("new file"))
    cuts = [f"{tmp_path}-cut-{n}" for n in range(40)]

    def cut(call):
        if call.kind == "sync" and call.path.endswith("t-1.jsonl"):
            for name in cuts:
                platter.cut(name, chance)

    with disk.open(address(str(tmp_path), FOLDER)) as store:
        store.thread("t").save({"n": 0})
        disk.arm(Fault(at=1, lasting=True, effect=cut))
        store.thread("t").save({"n": 1, "text": "x" * 3000})
        disk.heal()
    disk.remove()

    found = set()
    for name in cuts:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*was never finished")
            store = holdfast.open(address(name, FOLDER))
        with store:
            found.add(store.thread("t").load()["n"])
            assert problems_of(store) == []
        shutil.rmtree(name)
    assert found == {0, 1}


# --- interrupted ----------------------------------------------------------------------


def change(store, call):
    with store:
        STEPS[call][-1](store)
        return dump(store)


@pytest.fixture(
    params=["prune", "delete-conversation", "checkpoint-agent", "restore-agent"]
)
def interrupted(request, tmp_path):
    """A folder whose writer was killed when all that it wanted to do was written down.

    With it, what the store will hold when that has been done.
    """
    call, source = request.param, Source("call", 2_000_000)
    url = address(str(tmp_path / "disk"), FOLDER)
    intent = str(tmp_path / "disk" / "store" / WORK / "intent")
    build_for(call, url)
    copy = copy_folder(str(tmp_path / "disk"), str(tmp_path / "copy"), FOLDER)
    expected = change(holdfast.open(copy, **source.options()), call)
    source.reset()

    def stop(fault):
        if fault.kind in {"write", "rename"} and os.path.exists(intent):
            kill(fault)

    def be_killed(tell):
        disk = FaultyDisk("killing")
        disk.arm(Fault(at=1, lasting=True, effect=stop))
        change(disk.open(url, **source.options()), call)

    child = Child(be_killed)
    child.wait()
    assert child.was_killed
    assert os.path.exists(intent)
    return url, expected


def test_what_was_written_down_is_done_by_whoever_opens_the_folder(interrupted):
    url, expected = interrupted

    with holdfast.open(url, cache_size=0) as store:
        assert dump(store) == expected
        assert problems_of(store) == []
        assert goes_on(store) is None

    work = os.listdir(os.path.join(url.removeprefix("dir:"), WORK))
    assert not [name for name in work if name.startswith(("intent", "new-"))]


def test_a_reader_sees_it_as_done_and_does_nothing(interrupted):
    url, expected = interrupted
    folder = url.removeprefix("dir:")
    before = {name: os.stat(os.path.join(folder, name)) for name in os.listdir(folder)}

    with holdfast.open(url, read_only=True, cache_size=0) as store:
        assert dump(store) == expected
        assert problems_of(store) == []

    assert os.path.exists(os.path.join(folder, WORK, "intent"))
    for name, found in before.items():
        assert os.stat(os.path.join(folder, name)).st_mtime_ns == found.st_mtime_ns


# --- damaged --------------------------------------------------------------------------


@pytest.fixture
def two(url):
    """A store with two families of five saves."""
    save_some(url, "chat")
    save_some(url, "other")


def damage(folder, old, new, name="chat-1.jsonl"):
    path = folder / name
    data = path.read_bytes()
    assert old in data
    next_tick(folder)
    path.write_bytes(data.replace(old, new, 1))
    return path.read_bytes()


@pytest.mark.parametrize("has_index", [True, False])
def test_a_damaged_line_is_named_and_the_other_families_go_on(
    has_index, url, folder, two
):
    damaged = damage(folder, b"text 2 text", b"text 2 tent")
    if not has_index:
        shutil.rmtree(folder / WORK)

    with holdfast.open(url) as store:
        chat, other = store.thread("chat"), store.thread("other")
        for touch in (
            chat.load,
            chat.history,
            chat.moves,
            chat.journal,
            lambda: chat.save({}),
            lambda: chat.append(m=[1]),
            lambda: chat.fork("fork"),
            chat.delete,
            store.threads,
            store.changes,
            store.stats,
            lambda: store.prune(Retention(last=1)),
        ):
            with pytest.raises(Corrupt, match=r"chat-1\.jsonl is damaged: at byte"):
                touch()
        assert other.load()["n"] == 4
        assert other.save({"n": 5}).step == 6
        assert len(other.history()) == 6
        other.delete("@~1")
        assert other.load()["n"] == 5
        problems = problems_of(store)

    assert [p for p in problems if "chat-1.jsonl: at byte" in p] != []
    assert (folder / "chat-1.jsonl").read_bytes() == damaged


def test_a_flipped_bit_that_the_file_system_does_not_show_is_found_by_verify(
    url, folder, two
):
    path = folder / "chat-1.jsonl"
    before = path.stat()
    damage(folder, b"text 2 text", b"text 2 tent")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with holdfast.open(url) as store:
        assert store.thread("chat").load()["n"] == 4
        [problem] = problems_of(store)

    assert "chat-1.jsonl: at byte" in problem
    assert "checksum" in problem


def test_what_the_index_still_knows_of_a_damaged_file_is_salvaged(url, folder, two):
    damage(folder, b"text 2 text", b"text 2 tent")

    with holdfast.open(url) as store:
        report = store.salvage(f"dir:{folder}-salvaged")

    assert report.checkpoints == 10
    assert "chat-1.jsonl" in str(report.lost[0])
    with holdfast.open(f"dir:{folder}-salvaged") as saved:
        assert [c.step for c in saved.thread("chat").history()] == [5, 4, 3, 2, 1]
        assert saved.thread("chat").load("@~2")["text"] == "text 2 " * 100
        assert problems_of(saved) == []


def test_without_the_index_all_but_the_damaged_line_is_salvaged(url, folder, two):
    damage(folder, b"text 2 text", b"text 2 tent")
    shutil.rmtree(folder / WORK)

    with holdfast.open(url) as store:
        report = store.salvage(f"{folder}.db")

    assert report.checkpoints == 9
    with holdfast.open(f"{folder}.db") as saved:
        texts = [saved.load(c)["n"] for c in saved.thread("chat").history()]
        assert texts == [4, 3, 1, 0]


def garbled(lines, at):
    return [*lines[:at], lines[at].replace(b'"after"', b'"aftre"'), *lines[at + 1 :]]


def missing(lines, at):
    return [*lines[:at], *lines[at + 1 :]]


def twice(lines, at):
    return [*lines[: at + 1], *lines[at:]]


def swapped(lines, at):
    return [*lines[:at], *reversed(lines[at : at + 2]), *lines[at + 2 :]]


def merged(lines, at):
    """What Git leaves when two clones went on by themselves."""
    writer = LineEncoder(json.loads(lines[at - 1])["check"] if at else FIRST)
    mark = MarkPart(seq=1, label="theirs")
    theirs = writer.encode([LineContent(family=1, marks=[mark])])
    begin, middle, end = b"<<<<<<< HEAD\n", b"=======\n", b">>>>>>> theirs\n"
    return [*lines[:at], begin, *lines[at:], middle, *theirs, end]


@pytest.fixture
def clone(url, folder):
    """A folder without an index, with a line of every kind in the file of a thread."""
    with holdfast.open(url) as store:
        chat = store.thread("chat", owner="ann")
        for n in range(3):
            chat.append(messages=[n])
        chat.label("done")
        chat.tag("a")
        chat.record("paid", {"sum": 1})
        chat.fork("fork").append(messages=["fork"])
        chat.rewind("@~1")
        chat.describe(owner="bob")
        store.thread("other").save({"n": 4})
    shutil.rmtree(folder / WORK)


@pytest.mark.parametrize("change", [garbled, missing, twice, swapped, merged])
def test_whichever_line_of_a_clone_is_not_in_order_the_other_threads_go_on(
    change, url, folder, clone, tmp_path
):
    path = folder / "chat-1.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    last = len(lines) - (change in {missing, swapped})

    for at in range(last):
        shutil.rmtree(folder / WORK, ignore_errors=True)
        path.write_bytes(b"".join(change(lines, at)))
        with holdfast.open(url, read_only=True) as store:
            assert store.thread("other").load() == {"n": 4}
        with holdfast.open(url) as store:
            with pytest.raises(Corrupt, match=r"chat-1\.jsonl .* salvage\(\)"):
                store.thread("chat").load()
            assert store.thread("other").save({"n": 4}).step == 2 + at
            assert any("chat-1.jsonl" in problem for problem in problems_of(store))
            store.salvage(f"dir:{tmp_path / f'saved-{at}'}")

        with holdfast.open(f"dir:{tmp_path / f'saved-{at}'}") as saved:
            assert saved.thread("other").load() == {"n": 4}
            assert problems_of(saved) == []
            if change in {twice, merged}:
                assert saved.thread("fork").load() == {"messages": [0, 1, 2, "fork"]}
                assert saved.thread("chat").journal() == {"paid": {"sum": 1}}
            labels = {c.label for c in saved.thread("chat").history(None, all=True)}
            assert "theirs" not in labels or (change is merged and at == last - 1)


def test_one_file_of_two_clones_can_be_read_in_a_folder_of_its_own(url, folder):
    save_some(url, "chat")
    shutil.copytree(folder, f"{folder}-theirs")
    with holdfast.open(url) as store, holdfast.open(f"{url}-theirs") as theirs:
        store.thread("ours").save({"n": 1})
        theirs.thread("theirs").save({"n": 2})
    shutil.copy(f"{folder}-theirs/theirs-2.jsonl", folder)

    with holdfast.open(url) as store:
        assert store.thread("ours").load() == {"n": 1}
        with pytest.raises(Corrupt, match=r"family 2 is in ours-2\.jsonl"):
            store.threads()

    alone = f"{folder}-alone"
    os.mkdir(alone)
    for name in ("store.jsonl", "theirs-2.jsonl"):
        shutil.copy(f"{folder}/{name}", alone)
    with holdfast.open(f"dir:{alone}") as store:
        assert store.thread("theirs").load() == {"n": 2}


def test_an_empty_file_is_damaged(url, folder, two):
    shutil.rmtree(folder / WORK)
    (folder / "chat-1.jsonl").write_bytes(b"")

    with holdfast.open(url) as store:
        with pytest.raises(Corrupt, match="a line is bad: there is none"):
            store.thread("chat").load()
        assert store.thread("other").load()["n"] == 4


# --- brought by an attacker -----------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [
        {"appends": {"../victim.jsonl": {"offset": 0, "text": "x"}}},
        {"renames": {"new-0": "../victim.jsonl"}},
        {"renames": {"../../victim.jsonl": "x.jsonl"}},
        {"removes": ["../victim.jsonl"]},
        {"removes": [".gitattributes"]},
    ],
)
def test_an_intent_that_names_another_file_is_refused(part, url, folder, two):
    victim = folder.parent / "victim.jsonl"
    victim.write_text("mine")
    content = {"appends": {}, "renames": {}, "removes": []} | part
    intent = folder / WORK / "intent"
    body = json.dumps(content).encode()[1:]
    check = xxh3_64_hexdigest(body).encode()
    intent.write_bytes(b'{"bytes":%d,"check":"%b",%b\n' % (len(body), check, body))
    (folder / WORK / "new-0").write_text("theirs")

    for read_only in (True, False):
        with pytest.raises(Corrupt, match="no version of Holdfast has written it"):
            holdfast.open(url, read_only=read_only)

    assert victim.read_text() == "mine"
    assert (folder / ".gitattributes").exists()
    intent.unlink()
    with holdfast.open(url) as store:
        assert store.thread("chat").load()["n"] == 4


def test_a_work_folder_that_is_a_link_is_refused(url, folder, two, tmp_path):
    shutil.rmtree(folder / WORK)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "new-letter").write_text("mine")
    (folder / WORK).symlink_to(tmp_path / "mine")

    with pytest.raises(HoldfastError, match=r"symbolic link.* remove it"):
        holdfast.open(url)

    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["new-letter"]


def test_a_pipe_is_not_waited_for(url, folder, two):
    os.mkfifo(folder / "pipe-9.jsonl")

    with holdfast.open(url) as store:
        assert store.thread("other").load()["n"] == 4
        assert "pipe-9.jsonl" in problems_of(store)[0]


def rewrite(path, change):
    """Write the one line of a file again, changed, with the checksum that fits."""
    line = change(json.loads(path.read_bytes()))
    text = json.dumps(line, separators=(",", ":"))
    body = text[text.index('"after"') :].encode()
    check = xxh3_64_hexdigest(body).encode()
    path.write_bytes(b'{"bytes":%d,"check":"%b",%b\n' % (len(body), check, body))


@pytest.mark.parametrize(
    "manifest", ['{"single":"x","block":0}', '{"mapping":{},"block":1e9}']
)
def test_a_manifest_that_nobody_wrote_so_is_damaged(manifest, url, folder):
    save_some(url, "chat", count=1)
    path = folder / "chat-1.jsonl"
    added = {"manifest": json.loads(manifest)}
    rewrite(path, lambda line: {**line, "checkpoint": line["checkpoint"] | added})

    with holdfast.open(url) as store:
        with pytest.raises(Corrupt, match="manifest"):
            store.thread("chat").load()
        with pytest.raises(Corrupt, match="manifest"):
            store.thread("chat").append(m=[1])
        assert store.verify().problems
        store.salvage(f"{folder}.db")


def test_numbers_that_are_far_apart_do_not_hold_up_verify_and_salvage(url, folder):
    save_some(url, "chat", count=1)
    path = folder / "chat-1.jsonl"
    moves = [MovePart(seq=1 << 61, thread=1, kind="mark", moved_at=1)]
    entry = EntryPart(seq=1 << 60, thread=1, key="k", value=Raw(b"1"), recorded_at=1)
    writer = LineEncoder(json.loads(path.read_bytes())["check"])
    added = writer.encode([LineContent(family=1, journal=[entry], moves=moves)])
    path.write_bytes(path.read_bytes() + b"".join(added))

    with holdfast.open(url) as store:
        assert problems_of(store) == []
        assert store.salvage(f"{folder}.db").journal_entries == 1


def test_half_of_an_origin_is_damage(url, folder):
    save_some(url, "chat", count=1)
    half = {"forked_thread": "other"}
    rewrite(
        folder / "chat-1.jsonl", lambda line: {**line, "thread": line["thread"] | half}
    )

    with holdfast.open(url) as store:
        with pytest.raises(Corrupt, match="a thread and a checkpoint"):
            store.export_to(f"{folder}.hfa")
        assert store.verify().problems


def test_a_checkpoint_of_a_thread_that_is_not_there_is_damage(url, folder):
    save_some(url, "chat", count=1)
    rewrite(
        folder / "chat-1.jsonl",
        lambda line: {**line, "checkpoint": line["checkpoint"] | {"thread": 9}},
    )

    with holdfast.open(url) as store:
        with pytest.raises(Corrupt):
            store.export_to(f"{folder}.hfa")
        assert store.verify().problems


@pytest.mark.parametrize("part", ["thread", "checkpoint"])
def test_metadata_that_are_no_dict_are_damage(part, url, folder):
    save_some(url, "chat", count=1)
    rewrite(
        folder / "chat-1.jsonl",
        lambda line: {**line, part: line[part] | {"metadata": "text"}},
    )

    with holdfast.open(url) as store:
        record, checkpoint = store.threads()[0], store.thread("chat").get()
        with pytest.raises(Corrupt, match="metadata"):
            _ = record.metadata if part == "thread" else checkpoint.metadata
        assert store.verify().problems


def test_a_damaged_file_that_is_put_right_is_read_again(url, folder, two):
    whole = (folder / "chat-1.jsonl").read_bytes()
    damage(folder, b"text 2 text", b"text 2 tent")

    with holdfast.open(url) as store:
        with pytest.raises(Corrupt):
            store.thread("chat").load()
        next_tick(folder)
        (folder / "chat-1.jsonl").write_bytes(whole)

        assert store.thread("chat").load()["n"] == 4
        assert store.thread("chat").save({"n": 5}).step == 6
        assert problems_of(store) == []


def test_a_damaged_file_that_is_moved_away_is_gone(url, folder, two):
    damage(folder, b"text 2 text", b"text 2 tent")

    with holdfast.open(url) as store:
        with pytest.raises(Corrupt):
            store.threads()
        (folder / "chat-1.jsonl").rename(folder / "chat-1.jsonl.bad")

        assert [thread.id for thread in store.threads()] == ["other"]
        assert store.thread("chat").save({"n": 0}).step == 1


def test_where_names_of_threads_may_be_lost_no_new_one_is_begun(url, folder, two):
    damage(folder, b'"name":"chat"', b'"name":"chut"')
    shutil.rmtree(folder / WORK)

    with holdfast.open(url) as store:
        for name in ("chat", "new"):
            with pytest.raises(Corrupt):
                store.thread(name).save({})
            with pytest.raises(Corrupt):
                store.thread(name).load()
        assert store.thread("other").load()["n"] == 4


def test_where_the_names_of_threads_are_known_new_ones_can_begin(url, folder, two):
    damage(folder, b'"name":"chat"', b'"name":"chut"')

    with holdfast.open(url) as store:
        with pytest.raises(Corrupt):
            store.thread("chat").save({})
        assert store.thread("new").save({}).step == 1
        with pytest.raises(NotFound):
            store.thread("nobody").load()


def test_a_file_that_cannot_be_read_is_named_until_it_can(url, folder, two):
    def fail(call):
        if call.path.endswith("chat-1.jsonl"):
            io_error(call)

    os.utime(folder / "chat-1.jsonl")
    disk = FaultyDisk("bad sector")
    disk.arm(Fault(at=1, lasting=True, effect=fail, kinds=frozenset({"read"})))

    with disk.open(url) as store:
        with pytest.raises(Corrupt, match=r"chat-1\.jsonl .* cannot be read"):
            store.thread("chat").load()
        assert store.thread("other").save({"n": 5}).step == 6
        assert store.thread("new").save({}).step == 1
        disk.heal()
        assert store.thread("chat").load()["n"] == 4
        assert problems_of(store) == []
    disk.remove()


def test_damage_of_the_file_of_the_store_is_named_too(url, folder, two):
    damage(folder, b'"format":2', b'"format":0', "store.jsonl")

    with holdfast.open(url) as store:
        with pytest.raises(Corrupt, match=r"store\.jsonl"):
            run(backend_of(store).setting("x"))
        assert store.thread("chat").load()["n"] == 4
        assert "store.jsonl" in problems_of(store)[0]


# --- rotten ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The folder of a sound and closed store."""
    place = tmp_path_factory.mktemp("sound")
    url = address(str(place), FOLDER)
    build_more(url, threads=3)
    return str(place)


@pytest.fixture(scope="module")
def truth(sound):
    """Every single read of the sound store and what it gives, by name."""
    with holdfast.open(address(sound, FOLDER), cache_size=0) as store:
        return truth_of(store)


def rot(sound, target, chance, *, how, has_index):
    """A copy of the store with one of its files damaged; which, and where."""
    url = copy_folder(sound, target, FOLDER)
    folder = url.removeprefix("dir:")
    name = chance.choice(sorted(n for n in os.listdir(folder) if n.endswith(".jsonl")))
    path = os.path.join(folder, name)
    with open(path, "rb") as file:
        data, where = DAMAGES[how][0](file.read().ljust(512), chance)
    with open(path, "wb") as file:
        file.write(data)
    if not has_index:
        shutil.rmtree(os.path.join(folder, WORK))
    return url, f"{name}: {where}"


@pytest.mark.filterwarnings("ignore:.*was never finished:RuntimeWarning")
@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("how", ["flip", "zeros"])
def test_nothing_wrong_is_read_from_a_damaged_folder(
    how, has_index, sound, truth, tmp_path
):
    seed = seed_of(f"folder {how}")
    chance = random.Random(seed)
    harmed = salvaged = 0

    for number in range(FOLDERS):
        target = str(tmp_path / "rotten")
        url, where = rot(sound, target, chance, how=how, has_index=has_index)
        outcome = ReadOutcome(url, truth)

        assert outcome.wrong == [], f"seed {seed}: {where}"
        if outcome.failed:
            assert outcome.problems, f"seed {seed}: verify missed {where}"
            harmed += 1
        if "open" not in outcome.failed and number % 5 == 0:
            saved = str(tmp_path / f"{number}.db")
            with holdfast.open(url) as store:
                store.salvage(saved)
            assert missing_from(saved, outcome, truth) == [], f"seed {seed}: {where}"
            salvaged += 1

    assert harmed > FOLDERS / 2, f"seed {seed}"
    assert salvaged > 0
