"""Archives: files that are whole or refused, and JSON Lines for people."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import signal
import stat
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import Conflict, Corrupt, FormatMismatch, HoldfastError, NotFound
from holdfast import archive as archives
from holdfast.testing import FakeClock, blocking, ids, raises
from inner.archive import (
    FORMS,
    FamilyLine,
    Forms,
    FrameReader,
    FrameWriter,
    Heading,
    family_of,
    fingerprint,
    living,
    seqs_of,
)
from inner.values import find_at, parse_path
from support.folders import PROGRAMS
from support.samples import LONGER
from support.stores import backend_of

PROGRAM = PROGRAMS / "import_archive.py"
KINDS = ("archive", "family", "thread", "checkpoint", "entry", "move", "segment")
PLURALS = {k: f"{k}s" for k in KINDS} | {"entry": "entries"}


def filled(store):
    chat = store.thread("chat", owner="ann", metadata={"k": [1]})
    chat.save({"messages": [LONGER], "n": 1}, label="first", tags=["a"])
    chat.append(messages=["more", LONGER])
    chat.save({"messages": [LONGER], "n": 2}, metadata={"by": "me"})
    chat.record("call", {"refunded": 129})
    chat.rewind("@1")
    chat.fork("what if").save({"text": LONGER})
    store.thread("other").save({"n": 1})


def make(prefix="id-"):
    with holdfast.open(":memory:", clock=FakeClock(), new_id=ids(prefix)) as store:
        filled(store)
        file = io.BytesIO()
        store.export_to(file)
        return file.getvalue()


ARCHIVE = make()


def frames(archive=ARCHIVE):
    """The frames of an archive, without its end."""
    reader = FrameReader(io.BytesIO(archive), "test")
    found = []
    while not found or found[-1].kind != "end":
        found.append(reader.read(*KINDS, "end"))
    return found[:-1]


def written(found):
    """Frames as an archive with all its checksums right."""
    file = io.BytesIO()
    writer = FrameWriter(file)
    for kind, payload in found:
        writer.write(kind, payload)
    writer.end()
    return file.getvalue()


def changed(kind, change, nth=0):
    """The archive with one record changed, and its heading made to fit if it can be."""
    found = frames()
    place = [i for i, frame in enumerate(found) if frame.kind == kind][nth]
    record = json.loads(found[place].payload)
    change(record)
    found[place] = found[place]._replace(payload=msgspec.json.encode(record))
    if kind != "archive":
        with contextlib.suppress(Exception):
            heading = msgspec.json.encode(heading_of(read_families(found)))
            found[0] = found[0]._replace(payload=heading)
    return written(found)


def heading_of(families):
    """A heading that fits families which are numbered."""
    changes = {seq for family in families for seq in seqs_of(family)}
    threads = {thread.number for family in families for thread in family.threads}
    lines = tuple(FamilyLine(tuple(living(f)), fingerprint(f)) for f in families)
    return Heading(len(changes), len(threads), lines)


def read_families(found):
    """The families of frames, believed as they are."""
    families = []
    for kind, payload in found:
        if kind == "family":
            families.append(Forms([], [], [], []))
        elif kind in FORMS:
            forms = getattr(families[-1], PLURALS[kind])
            forms.append(msgspec.json.decode(payload, type=FORMS[kind]))
    return [family_of(forms) for forms in families]


class TestFiles:
    def test_a_file_is_private_and_named_when_it_is_whole(self, memory, tmp_path):
        filled(memory)

        contents = memory.export_to(tmp_path / "a.hfa")

        assert stat.S_IMODE((tmp_path / "a.hfa").stat().st_mode) == 0o600
        assert os.listdir(tmp_path) == ["a.hfa"]
        assert archives.check(tmp_path / "a.hfa") == contents
        whole = (tmp_path / "a.hfa").read_bytes()
        body, _, _ = whole.rpartition(b"end 64 ")
        assert contents.sha256 == sha256(body).hexdigest()

    def test_an_existing_file_is_not_overwritten(self, memory, tmp_path):
        (tmp_path / "a.hfa").write_text("mine")

        with raises(Conflict, "file_exists"):
            memory.export_to(tmp_path / "a.hfa")

        assert (tmp_path / "a.hfa").read_text() == "mine"
        assert os.listdir(tmp_path) == ["a.hfa"]

    def test_an_export_that_fails_leaves_nothing(self, memory, tmp_path):
        filled(memory)

        def fail(done, of):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            memory.export_to(tmp_path / "a.hfa", progress=fail)
        with raises(HoldfastError, "cannot_open"):
            memory.export_to(tmp_path / "no" / "a.hfa")

        assert os.listdir(tmp_path) == []

    def test_what_is_not_there_cannot_be_imported(self, memory, tmp_path):
        with raises(NotFound, "cannot_open"):
            memory.import_archive(tmp_path / "nothing")

    def test_a_stream_that_cannot_go_back_is_read_too(self, memory):
        read, write = os.pipe()
        os.write(write, ARCHIVE)
        os.close(write)

        with open(read, "rb") as stream:
            imported = memory.import_archive(stream)

        assert imported.threads == ("chat", "what if", "other")

    def test_progress_is_told_from_nothing_to_all(self, memory):
        told = []

        def note(done, of):
            told.append((done, of))

        memory.import_archive(io.BytesIO(ARCHIVE), progress=note)
        imported, told[:] = list(told), []
        memory.export_to(io.BytesIO(), progress=note)

        for found in (imported, told):
            assert found[0] == (0, found[-1][1])
            assert found[-1][0] == found[-1][1] > 5
            assert found == sorted(found)

    def test_the_awaited_door_does_the_same(self, tmp_path):
        options = {"clock": FakeClock(), "new_id": ids()}
        with blocking(holdfast.open_async(tmp_path / "a.db", **options)) as store:
            filled(store)
            store.export_to(tmp_path / "a.hfa")

        assert (tmp_path / "a.hfa").read_bytes() == ARCHIVE

    @pytest.mark.parametrize("scheme", ["", "dir:"])
    def test_a_large_store_is_not_held_in_memory(self, tmp_path, scheme):
        with holdfast.open(tmp_path / "a.db", durability="normal") as store:
            for n in range(24):
                store.thread("big").save(
                    {"n": [f"{n} {i} " + LONGER for i in range(700)]}
                )
        size = (tmp_path / "a.db").stat().st_size

        with holdfast.open(tmp_path / "a.db", cache_size=0) as store:
            tracemalloc.start()
            store.export_to(tmp_path / "a.hfa")
            exporting = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            target = f"{scheme}{tmp_path}/b"
            with holdfast.open(target, durability="normal") as other:
                other.import_archive(tmp_path / "a.hfa")
                importing = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                other.export_to(tmp_path / "b.hfa")

        whole = (tmp_path / "a.hfa").read_bytes()
        assert (tmp_path / "b.hfa").read_bytes() == whole
        assert size > 20 << 20
        assert exporting < size / 5
        assert importing < size / 2


class TestDamage:
    @given(st.integers(0, len(ARCHIVE) - 1), st.integers(1, 255))
    def test_any_changed_byte_is_found(self, place, change):
        wrong = bytearray(ARCHIVE)
        wrong[place] ^= change

        with raises(HoldfastError) as refused:
            archives.check(io.BytesIO(bytes(wrong)))
        assert refused.error.code in {"corrupt", "format_mismatch"}

    @given(st.integers(0, len(ARCHIVE) - 1))
    def test_any_end_that_is_missing_is_found(self, length):
        with raises(HoldfastError) as refused:
            archives.check(io.BytesIO(ARCHIVE[:length]))
        assert refused.error.code in {"corrupt", "format_mismatch"}

    @given(st.data())
    def test_frames_in_another_order_are_refused(self, data):
        found = frames()
        one = data.draw(st.integers(0, len(found) - 1))
        other = data.draw(st.integers(0, len(found) - 1))
        found[one], found[other] = found[other], found[one]
        if found == frames():
            return

        with raises(Corrupt):
            archives.check(io.BytesIO(written(found)))

    @given(st.integers(0, len(frames()) - 1))
    def test_a_frame_that_is_left_out_or_doubled_is_noticed(self, place):
        found = frames()

        for wrong in (
            found[:place] + found[place + 1 :],
            found[:place] + found[place - 1 :],
        ):
            if wrong != found:
                with raises(Corrupt):
                    archives.check(io.BytesIO(written(wrong)))

    def test_nothing_is_allocated_for_what_is_only_claimed(self):
        claims = b"holdfast archive 1\narchive 999999999 0123456789abcdef\n{}"
        tracemalloc.start()

        with raises(Corrupt):
            archives.check(io.BytesIO(claims))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert peak < 8 << 20
        with raises(Corrupt):
            archives.check(io.BytesIO(claims.replace(b"999999999", b"9999999999")))

    def test_what_is_no_archive_says_so(self, memory):
        for wrong in (b"", b"\n", b"SQLite format 3\0" * 9, b"holdfast archive\n"):
            with raises(FormatMismatch):
                memory.import_archive(io.BytesIO(wrong))
        with raises(FormatMismatch) as refused:
            memory.import_archive(io.BytesIO(b"holdfast archive 2\n"))
        assert "upgrade" in str(refused.error)

    def test_a_compressed_one_is_left_to_whoever_compressed_it(self, memory):
        with raises(FormatMismatch) as refused:
            memory.import_archive(io.BytesIO(gzip.compress(ARCHIVE)))

        assert "gzip -d" in str(refused.error)

    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            ("archive", lambda r: r.update(changes=10**18)),
            ("archive", lambda r: r.update(threads=10**18)),
            ("archive", lambda r: r["families"].reverse()),
            ("archive", lambda r: r["families"][0].update(threads=["x", "y"])),
            ("archive", lambda r: r.update(extra=1)),
            ("family", lambda r: r.update(segments=10**18)),
            ("family", lambda r: r.update(checkpoints=10**18)),
            ("family", lambda r: r.update(threads=-1)),
            ("thread", lambda r: r.update(name="a\0b")),
            ("thread", lambda r: r.update(name="")),
            ("thread", lambda r: r.update(number=10**18)),
            ("thread", lambda r: r.update(head=10**18)),
            ("thread", lambda r: r.update(changed=2**70)),
            ("thread", lambda r: r.update(metadata="[1]")),
            ("thread", lambda r: r.update(metadata="{")),
            ("checkpoint", lambda r: r.update(parent=r["seq"])),
            ("checkpoint", lambda r: r.update(id="@")),
            ("checkpoint", lambda r: r.update(step=0)),
            ("checkpoint", lambda r: r.update(size=r["size"] + 1)),
            ("checkpoint", lambda r: r.update(sha256="0" * 64)),
            ("checkpoint", lambda r: r.update(manifest="[]")),
            ("checkpoint", lambda r: r.update(manifest='{"mapping":{"a":["list"]}}')),
            ("checkpoint", lambda r: r.update(runs=[[0, 4294967295]])),
            ("checkpoint", lambda r: r.update(runs=[[2, 1]])),
            ("checkpoint", lambda r: r.update(runs=[*r["runs"], *r["runs"]])),
            ("checkpoint", lambda r: r.update(runs=[])),
            ("checkpoint", lambda r: r.update(saved_at=1)),
            ("checkpoint", lambda r: r.update(thread=2)),
            ("checkpoint", lambda r: r.update(link="0" * 64)),
            ("checkpoint", lambda r: r.update(seq=r["seq"] + 1)),
            ("checkpoint", lambda r: r.update(tags=["a\0b"])),
            ("checkpoint", lambda r: r.update(metadata='{"a":1} ')),
            ("thread", lambda r: r.update(deleted_at=1)),
            ("thread", lambda r: r.update(number=3)),
            ("checkpoint", lambda r: r.update(thread=99)),
            ("entry", lambda r: r.update(value="nonsense")),
            ("entry", lambda r: r.update(thread=99)),
            ("entry", lambda r: r.update(seq=1)),
            ("move", lambda r: r.update(target=10**18)),
            ("move", lambda r: r.update(kind="")),
        ],
    )
    def test_a_lie_with_right_checksums_is_found_out(self, memory, kind, change):
        wrong = changed(kind, change)

        with raises(Corrupt) as refused:
            memory.import_archive(io.BytesIO(wrong))

        assert "nothing of it was imported" in str(refused.error)
        assert list(memory.threads()) == []

    def test_segments_that_do_not_add_up_are_found_out(self, memory):
        found = frames()
        place = next(i for i, frame in enumerate(found) if frame.kind == "segment")
        found[place] = found[place]._replace(payload=b'"another text"')

        with raises(Corrupt) as refused:
            memory.import_archive(io.BytesIO(written(found)))

        assert "not what was saved" in str(refused.error)
        assert list(memory.threads()) == []

    def test_a_damaged_store_is_not_exported_as_if_it_were_whole(self, path, tmp_path):
        with holdfast.open(path) as store:
            filled(store)
            backend_of(store).database.writer.execute("delete from segment")

            with raises(Corrupt):
                store.export_to(tmp_path / "a.hfa")

        assert not (tmp_path / "a.hfa").exists()

    def test_a_store_with_a_damaged_record_is_not_exported(self, memory, tmp_path):
        filled(memory)
        backend_of(memory).database.writer.execute(
            "update checkpoint set checksum = 0 where label = 'first'"
        )

        with raises(Corrupt) as refused:
            memory.export_to(tmp_path / "a.hfa")

        assert "salvage() it first" in str(refused.error)
        assert not (tmp_path / "a.hfa").exists()


class TestImporting:
    def test_what_is_there_is_skipped_and_the_rest_is_imported(self, memory):
        memory.import_archive(io.BytesIO(ARCHIVE))
        memory.thread("other").delete()

        imported = memory.import_archive(io.BytesIO(ARCHIVE))

        assert (imported.threads, imported.checkpoints) == (("other",), 1)
        assert imported.skipped == ("chat", "what if")
        assert memory.thread("other").load() == {"n": 1}
        assert memory.verify().ok

    def test_two_threads_may_have_been_touched_at_one_number(self, memory):
        """A record of a key that is there touches its thread but makes no change."""
        memory.thread("a").save({"x": 1})
        memory.thread("a").record("k", 1)
        memory.thread("a").record("k", 2)
        memory.thread("b").save({"x": 1})
        archive = io.BytesIO()
        memory.export_to(archive)

        with holdfast.open(":memory:") as other:
            imported = other.import_archive(io.BytesIO(archive.getvalue()))
            entries = other.thread("a").journal()

        assert imported.threads == ("a", "b")
        assert entries == {"k": 1}

    @pytest.mark.parametrize("done", [0, 64, 128])
    def test_a_process_killed_while_importing_leaves_nothing(self, tmp_path, done):
        with holdfast.open(":memory:") as store:
            filled(store)
            texts = [f"{n} {LONGER}" for n in range(900)]
            store.thread("long").save({"texts": texts})
            store.export_to(tmp_path / "a.hfa")
        target = str(tmp_path / "b.db")

        killed = subprocess.run(
            [sys.executable, str(PROGRAM), tmp_path / "a.hfa", target, str(done)],
            check=False,
        )

        assert killed.returncode == -signal.SIGKILL
        with holdfast.open(target) as store:
            assert list(store.threads()) == []
            assert store.verify().ok
            assert len(store.import_archive(tmp_path / "a.hfa").threads) == 4
            assert store.verify().ok

    def test_an_archive_that_changes_between_two_looks_is_refused(self, tmp_path):
        other = make("ix-")

        class Swapped(io.BytesIO):
            looks = 0

            def seek(self, *where):
                self.looks += 1
                if self.looks == 3:
                    self.getbuffer()[:] = other
                return super().seek(*where)

        with holdfast.open(tmp_path / "b.db") as store:
            with raises(Corrupt):
                store.import_archive(Swapped(ARCHIVE))
            assert list(store.threads()) == []

    def test_somebody_who_makes_the_thread_meanwhile_is_first(self, tmp_path):
        with (
            holdfast.open(tmp_path / "b.db") as store,
            holdfast.open(tmp_path / "b.db") as rival,
        ):
            real = backend_of(store).admit

            async def late(admission):
                rival.thread("what if").save({"mine": 1})
                await real(admission)

            backend_of(store).admit = late
            with raises(Conflict, "thread_exists"):
                store.import_archive(io.BytesIO(ARCHIVE))

            assert [thread.id for thread in store.threads()] == ["what if"]
            assert store.verify().ok

    def test_a_read_only_store_takes_nothing_in(self, tmp_path):
        holdfast.open(tmp_path / "b.db").close()

        with (
            holdfast.open(tmp_path / "b.db", read_only=True) as store,
            raises(holdfast.Unsupported, "read_only"),
        ):
            store.import_archive(io.BytesIO(ARCHIVE))


class TestRandomLives:
    @settings(max_examples=25)
    @given(st.data())
    def test_whatever_happened_is_the_same_after_a_journey(self, data):
        clock = FakeClock()
        with (
            holdfast.open(":memory:", clock=clock, new_id=ids()) as store,
            holdfast.open(":memory:") as other,
            holdfast.open(":memory:") as third,
        ):
            for _ in range(data.draw(st.integers(1, 25))):
                clock.now += 1_000_000
                live_a_little(store, data.draw)
            other.thread("mine").save({"text": LONGER})
            first, second = io.BytesIO(), io.BytesIO()
            contents = store.export_to(first)
            store.copy_to(third)

            other.import_archive(first)
            other.export_to(second, threads=contents.threads)

            assert second.getvalue() == first.getvalue()
            assert other.verify().ok
            again = io.BytesIO()
            third.export_to(again)
            assert again.getvalue() == first.getvalue()
            for name in contents.threads:
                assert seen(other.thread(name)) == seen(store.thread(name))


def live_a_little(store, draw):
    """Something that can happen to a store."""
    name = draw(st.sampled_from("abc"))
    thread = store.thread(name)
    steps = [f"@{n}" for n in range(1, thread.step + 1)] or ["@"]
    what = draw(st.sampled_from(EVENTS))
    with contextlib.suppress(holdfast.HoldfastError):
        EVENTS_DONE[what](store, thread, draw(st.sampled_from(steps)), draw)


EVENTS_DONE = {
    "save": lambda store, t, at, draw: t.save({"n": draw(st.integers()), "x": LONGER}),
    "append": lambda store, t, at, draw: t.append(list=[draw(st.text()), LONGER]),
    "rewind": lambda store, t, at, draw: t.rewind(at),
    "undo": lambda store, t, at, draw: t.undo(),
    "label": lambda store, t, at, draw: t.label(draw(st.sampled_from("xy")), at),
    "tag": lambda store, t, at, draw: t.tag("t", ref=at),
    "fork": lambda store, t, at, draw: t.fork(draw(st.sampled_from("abc")), at),
    "delete": lambda store, t, at, draw: t.delete(),
    "remove": lambda store, t, at, draw: t.delete(at),
    "record": lambda store, t, at, draw: t.record("k", draw(st.integers())),
    "note": lambda store, t, at, draw: t.record("k", 1, checkpoint=t.get(at)),
    "describe": lambda store, t, at, draw: t.describe(owner="ann"),
    "prune": lambda store, t, at, draw: store.prune(holdfast.Retention(last=1)),
    "hard": lambda store, t, at, draw: t.rewind(at, hard=True),
}
EVENTS = ["save", "save", "append", *EVENTS_DONE]


def seen(thread):
    head = thread.head
    return (
        head and (head.id, thread.load()),
        thread.journal(),
        [(c.id, c.step, c.digest) for c in thread.history(None, all=True)],
        [(m.kind, m.source, m.target, m.moved_at) for m in thread.moves(None)],
    )


class TestLines:
    def lines(self, store, **options):
        file = io.BytesIO()
        count = store.export_lines(file, **options)
        found = [json.loads(line) for line in file.getvalue().splitlines()]
        assert len(found) == count
        return found

    def test_every_checkpoint_is_a_line_with_its_state(self, memory):
        filled(memory)

        found = self.lines(memory)

        assert [(line["thread"], line["step"]) for line in found] == [
            ("chat", 1),
            ("chat", 2),
            ("chat", 3),
            ("what if", 2),
            ("other", 1),
        ]
        assert found[1]["state"] == {"messages": [LONGER, "more", LONGER], "n": 1}
        assert found[0]["label"] == "first"
        assert found[2]["metadata"] == {"by": "me"}

    def test_lines_can_be_chosen(self, memory, clock):
        filled(memory)
        clock.now += 86_400_000_000
        memory.thread("chat").save({"messages": ["new"]})
        day = datetime(2023, 11, 16, tzinfo=UTC)

        [newest] = self.lines(memory, since=day, threads=["chat"], shown="messages")
        heads = self.lines(memory, heads=True)

        assert newest["messages"] == ["new"]
        assert "state" not in newest
        assert [line["thread"] for line in heads] == ["chat", "what if", "other"]
        with raises(NotFound):
            self.lines(memory, threads=["nobody"])
        with raises(holdfast.Unstorable):
            self.lines(memory, shown="everything")

    def test_what_is_secret_is_left_out(self, memory):
        message = {"role": "user", "content": "secret", "parts": [{"text": "secret"}]}
        memory.thread("chat").save({"messages": [message, message], "key": "secret"})

        [line] = self.lines(
            memory,
            redact=[
                "messages.*.content",
                "/key",
                "messages.*.parts[0].text",
                "no.such",
            ],
        )

        assert "secret" not in json.dumps(line)
        assert line["state"]["messages"][1]["role"] == "user"
        assert line["state"]["key"] == "[redacted]"

    def test_a_state_that_is_no_mapping_and_values_that_are_no_json(self, memory):
        memory.thread("chat").save([1, b"bytes"])
        memory.thread("other").save({"at": datetime(2026, 1, 1, tzinfo=UTC)})

        first, second = self.lines(memory)
        [without, _] = self.lines(memory, shown="messages")

        assert first["state"][0] == 1
        assert "$hf." in json.dumps(first["state"][1])
        assert "2026" in json.dumps(second["state"])
        assert without["messages"] == []

    def test_a_long_thread_is_told_in_full(self, memory):
        for n in range(205):
            memory.thread("chat").save({"n": n})

        assert [line["state"]["n"] for line in self.lines(memory)] == list(range(205))


class TestPaths:
    @pytest.mark.parametrize(
        ("text", "parts"),
        [
            ("", ()),
            ("(root)", ()),
            ("a", ("a",)),
            ("a.b", ("a", "b")),
            ("a[3].b", ("a", 3, "b")),
            ("a[-1]", ("a", -1)),
            ("[0]", (0,)),
            ('a["b c"]', ("a", "b c")),
            ('["a.b[0]"]', ("a.b[0]",)),
            ("/a/0/b", ("a", "0", "b")),
            ("/a~1b/c~0d", ("a/b", "c~d")),
            ("/", ("",)),
            ("a b.c-d", ("a b", "c-d")),
        ],
    )
    def test_a_path_has_parts(self, text, parts):
        assert parse_path(text) == parts

    def test_digits_are_a_key_or_an_index(self):
        state = {"list": [{"7": "text"}], 7: "number", "8": "eight"}

        assert find_at(state, parse_path("list[0].7")) == "text"
        assert find_at(state, parse_path("/list/0/7")) == "text"
        assert find_at(state, parse_path("[8]")) == "eight"
        assert find_at(state, parse_path("/7")) == "number"
        for missing in ("list[1]", "list.x", "x", "list[0].7[0]"):
            with pytest.raises(KeyError):
                find_at(state, parse_path(missing))
