"""Keeping a store in order from the command line: what the transcripts do not show."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest
import shell
import stores

import holdfast
from holdfast.cli import main
from inner.cli import counted, file_system, first_bad
from inner.sqlite import PAGE
from support.folders import FIXTURES
from support.stores import backend_of


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a store is."""
    monkeypatch.chdir(tmp_path)
    stores.make_support(tmp_path / "agents.db")
    return tmp_path


@pytest.fixture
def said(capfd):
    """What a command prints for programs, and its status."""

    def run(command, *arguments):
        status = main([command, "--json", *arguments])
        return status, json.loads(capfd.readouterr().out)

    return run


def spoil(path, at, data=b"\0"):
    """Change bytes of a file that no process has open."""
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


class TestVerify:
    def test_damage_is_listed_and_ends_with_four(self, folder, said):
        with holdfast.open("agents.db") as store:
            store.thread("big").save({"text": "x" * 50_000})
            db = backend_of(store).database.writer
            db.execute("delete from segment where key % 2")

        status, found = said("verify")

        assert status == 4
        assert not found["ok"]
        assert found["problems"][0]["thread"] == "big"

    def test_what_can_be_read_is_saved_to_a_new_store(self, folder, said):
        with holdfast.open("agents.db") as store:
            store.thread("big").save({"text": "x" * 50_000})
            db = backend_of(store).database.writer
            db.execute("delete from segment where key % 2")

        status, found = said("verify", "--repair", "rest.db")

        assert status == 4
        assert found["repaired"]["checkpoints"] == 9
        assert len(found["repaired"]["lost"]) == 1
        assert said("verify", "--store", "rest.db")[0] == 0

    @pytest.mark.parametrize("start", [28, 100, 6000])
    def test_a_store_that_cannot_be_opened_is_saved_too(self, folder, said, start):
        spoil("agents.db", start, b"\xff\xff\xff")

        assert main(["threads"]) in {4, 7}
        status, found = said("verify", "--repair", "rest.db")

        assert status == 4
        assert found["repaired"]["checkpoints"] == 9
        assert found["repaired"]["threads"] == 3

    def test_what_is_no_store_at_all_is_not_repaired(self, folder, capfd):
        (folder / "other.db").write_bytes(b"something else " * 1000)

        assert main(["verify", "--repair", "rest.db", "--store", "other.db"]) == 7
        assert not (folder / "rest.db").exists()

    def test_a_quick_look_finds_a_bad_page(self, folder, said):
        middle = os.path.getsize("agents.db") // 2 // PAGE * PAGE
        spoil("agents.db", middle, b"\xff\xff")

        assert said("verify", "--quick")[0] == 4


class TestDoctor:
    def test_a_sound_store_gets_no_hint(self, folder, said):
        with holdfast.open("other.db") as store:
            store.thread("now").save({})

        status, found = said("doctor", "--store", "other.db")

        states = {finding["what"]: finding["state"] for finding in found["findings"]}
        assert status == 0
        assert "bad" not in states.values()
        assert states["sqlite"] == states["permissions"] == states["clock"] == "good"
        assert states["integrity"] == "good"

    def test_without_a_store_the_installation_is_looked_at(self, tmp_path, said):
        status, found = said("doctor", "-C", str(tmp_path))

        assert status == 0
        assert found["findings"][-1]["what"] == "store"
        assert found["findings"][-1]["state"] == "note"

    def test_what_others_may_read_is_noted(self, folder, said):
        os.chmod("agents.db", 0o644)

        _, found = said("doctor", "--quick")

        [finding] = [f for f in found["findings"] if f["what"] == "permissions"]
        assert finding["state"] == "note"
        assert "chmod go=" in finding["hint"]

    def test_a_person_sees_what_is_well_and_what_is_not(self, folder):
        os.chmod("agents.db", 0o640)

        ran = shell.on_terminal("doctor", "--quick", folder=folder)

        lines = {line.split()[0] for line in ran.out.splitlines() if line.strip()}
        assert ran.status == 0
        assert "\x1b[32mok\x1b[0m" in lines
        assert "\x1b[33mnote\x1b[0m" in lines

    def test_a_clock_behind_the_store_is_noted(self, folder, said):
        with holdfast.open("agents.db", clock=lambda: 1 << 60) as store:
            store.thread("later").save({})

        _, found = said("doctor", "--quick")

        [finding] = [f for f in found["findings"] if f["what"] == "clock"]
        assert finding["state"] == "note"

    def test_damage_ends_with_four(self, folder, said):
        spoil("agents.db", 6000, b"\xff\xff")

        assert said("doctor")[0] == 4

    def test_a_folder_of_text_is_looked_at_as_well(self, tmp_path, said):
        with holdfast.open(f"dir:{tmp_path}/text") as store:
            store.thread("a").save({})

        status, found = said("doctor", "--store", f"dir:{tmp_path}/text")

        assert status == 0
        assert any(finding["what"] == "contents" for finding in found["findings"])

    @pytest.mark.parametrize(
        ("folder", "kind"),
        [
            ("/", "ext4"),
            ("/home/ann", "ext4"),
            ("/mnt/share", "nfs4"),
            ("/mnt/share/deep/er", "nfs4"),
            ("/mnt/shared", "ext4"),
            ("/mnt/with space/x", "cifs"),
        ],
    )
    def test_the_nearest_mount_decides_about_the_file_system(
        self, tmp_path, folder, kind
    ):
        mounts = tmp_path / "mounts"
        mounts.write_text(
            "/dev/sda1 / ext4 rw 0 0\n"
            "server:/x /mnt/share nfs4 rw 0 0\n"
            "//server/y /mnt/with\\040space cifs rw 0 0\n"
        )

        assert file_system(folder, str(mounts)) == kind
        assert file_system(folder, str(tmp_path / "none")) is None


class TestBisect:
    @pytest.mark.parametrize("count", [1, 2, 3, 10, 31])
    def test_every_first_bad_place_is_found_with_few_trials(self, count):
        for first in range(count):
            tried = []

            def judge(place, tried=tried, first=first):
                tried.append(place)
                return "bad" if place >= first else "good"

            assert first_bad(count - 1, judge).first_bad == first
            assert len(tried) <= count.bit_length()

    def test_what_cannot_be_judged_is_passed_over(self):
        found = first_bad(
            9, lambda n: "skip" if n in (3, 4) else ["good", "bad"][n > 4]
        )

        assert found == (5, (3, 4))
        assert first_bad(9, lambda n: "skip") == (9, tuple(range(9)))

    def test_mistakes_are_told(self, folder, capfd):
        assert (
            main(["bisect", "fix-policy", "--good", "@6", "--bad", "@3", "true"]) == 2
        )
        assert main(["bisect", "fix-policy"]) == 2
        assert main(["bisect", "nobody", "--", "true"]) == 3
        assert main(["bisect", "fix-policy", "--", "no-such-command-at-all"]) == 2
        assert "cannot be run" in capfd.readouterr().err

    def test_the_state_comes_as_json(self, folder, said):
        program = "import json, sys; sys.exit('verdict' in json.load(sys.stdin))"

        _, found = said("bisect", "fix-policy", "--", sys.executable, "-c", program)

        assert found["first_bad"]["step"] == 5


class TestPrune:
    def test_rules_of_every_kind_are_understood(self, folder, said):
        rules = ["--keep-within", "30d", "--keep-hourly", "3", "--keep-daily", "2"]
        rules += ["--keep-weekly", "1", "--drop-idle", "2w", "--drop-beyond", "5"]
        rules += ["--kind", "thread", "--kind", "conversation"]
        rules += ["--drop-beyond-in-all", "9", "--prefix", "support"]

        status, found = said("prune", *rules, "--not-forks", "--dry-run")

        assert status == 0
        assert found["dry_run"]

    def test_mistakes_are_told(self, folder, capfd):
        for wrong in ([], ["--keep-within", "never"], ["--keep-last", "0"]):
            assert main(["prune", "--yes", *wrong]) == 2
        assert main(["prune", "--keep-last", "1", "--yes", "-R"]) == 6
        assert main(["prune", "--keep-last", "1", "--thread", "fix-polic"]) == 3
        assert "did you mean fix-policy?" in capfd.readouterr().err

    @pytest.mark.parametrize(
        ("limit", "removed"),
        [
            (["--thread", "try-credit"], 0),
            (["--thread", "fix-policy"], 1),
            (["--prefix", "support"], 4),
            (["--agent", "desk"], 5),
            (["--owner", "bob"], 0),
            (["--kind", "document"], 0),
        ],
    )
    def test_it_can_be_limited_to_some_threads(self, limit, removed, folder, said):
        rules = ["--keep-last", "1", "--not-tagged", "--not-labelled"]

        _, found = said("prune", *rules, *limit, "--yes")

        assert found["checkpoints"] == removed

    def test_whole_threads_are_dropped(self, folder, said):
        status, found = said("prune", "--drop-beyond", "1", "--yes")

        assert (status, found["threads"]) == (0, 2)

    def test_all_threads_but_the_last_used_are_dropped(self, folder, said):
        _, found = said("prune", "--drop-beyond-in-all", "2", "--yes")

        assert found["threads"] == 1


class TestArchives:
    def test_mistakes_are_told(self, folder, capfd):
        main(["export", "a.hfa"])

        assert main(["export", "b.hfa", "nobody"]) == 3
        assert main(["export", "b.hfa", "--heads"]) == 2
        assert main(["export", "-", "--json"]) == 2
        assert main(["export", "b.hfa", "--since", "later"]) == 2
        assert main(["import", "a.hfa", "--from", "nonsense"]) == 2
        assert main(["import", "nowhere.hfa"]) == 3
        assert main(["import", "a.hfa", "-R"]) == 6
        assert not (folder / "b.hfa").exists()

    def test_a_damaged_archive_ends_with_four(self, folder, capfd):
        main(["export", "a.hfa"])
        spoil("a.hfa", 2000, b"?")

        assert main(["import", "a.hfa", "--store", "new.db"]) == 4
        assert "nothing of it was imported" in capfd.readouterr().err

    def test_an_archive_goes_through_a_pipe(self, folder, monkeypatch, capfdbinary):
        main(["export", "-", "-q"])
        archive = capfdbinary.readouterr().out
        stdin = io.TextIOWrapper(io.BytesIO(archive))
        monkeypatch.setattr(sys, "stdin", stdin)

        assert main(["import", "-", "--store", "new.db"]) == 0
        assert main(["verify", "--store", "new.db"]) == 0

    def test_only_what_is_new_can_be_exported(self, folder, said):
        status, found = said("export", "a.hfa", "--since", "2026-11-15 10:02:50")

        assert (status, found["checkpoints"]) == (0, 3)

    def test_a_foreign_format_is_imported_with_its_report(self, folder, said):
        source = str(FIXTURES / "echo_state")

        status, found = said("import", source, "--from", "auto", "--store", "new.db")

        assert found["format"] == "echo"
        assert status == (4 if found["damaged"] else 5 if found["conflicts"] else 0)
        assert found["imported"]["checkpoints"] > 0

    def test_a_dry_run_makes_no_store(self, folder, said):
        main(["export", "a.hfa", "-q"])

        said_so = said("import", "a.hfa", "--dry-run", "--store", "new.db")

        assert said_so[1]["checkpoints"] == 9
        assert not (folder / "new.db").exists()


class TestBackup:
    def test_a_place_that_cannot_be_written_is_told(self, folder, capfd):
        assert main(["backup", "no/such/folder.db"]) == 6

    def test_a_folder_of_text_is_copied_as_one(self, tmp_path, said):
        with holdfast.open(f"dir:{tmp_path}/text") as store:
            store.thread("a").save({})
        copy = str(tmp_path / "copy")

        status, found = said(
            "backup", copy, "--check", "--store", f"dir:{tmp_path}/text"
        )

        assert (status, found["checked"]) == (0, True)


def test_things_are_counted_in_words():
    assert counted(1, "thread") == "1 thread"
    assert counted(0, "journal entry") == "0 journal entries"
    assert counted(1204, "checkpoint") == "1,204 checkpoints"


# --- erase ----------------------------------------------------------------------------


def test_a_thread_is_erased_and_the_receipt_has_no_name(folder, said, capfd):
    with holdfast.open("agents.db") as store:
        store.thread("of zoe", owner="zoe").save({"n": 1}, journal={"k": 1})
    status, planned = said("erase", "--owner", "zoe", "--dry-run")
    refused = main(["erase", "--owner", "zoe"])
    capfd.readouterr()
    done, receipt = said("erase", "--owner", "zoe", "--yes")

    assert (status, refused, done) == (0, 2, 0)
    assert (planned["threads"], planned["dry_run"]) == (1, True)
    assert (receipt["threads"], receipt["entries"], receipt["backups"]) == (
        1,
        1,
        "readable",
    )
    assert "zoe" not in json.dumps(receipt)
    with holdfast.open("agents.db") as store:
        assert store.thread("of zoe").head is None


def test_all_of_an_owner_is_exported(folder, capfdbinary):
    with holdfast.open("agents.db") as store:
        store.thread("of zoe", owner="zoe").save({"n": 1}, journal={"k": "v"})

    assert main(["export", "-", "--jsonl", "--owner", "zoe"]) == 0

    about, saved = map(json.loads, capfdbinary.readouterr().out.splitlines())
    assert about["journal"][0]["value"] == "v"
    assert saved["state"] == {"n": 1}
