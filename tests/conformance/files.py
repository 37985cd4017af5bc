"""Files in checkpoints: saved with the state, read back, kept by all that keeps it."""

from __future__ import annotations

import io
import random
from collections.abc import Callable

import holdfast
from holdfast import Thread
from holdfast.agents import Agent
from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.messages import Message, ToolCall
from holdfast.retention import Retention
from holdfast.testing._cases import LONG, Cases, untyped
from holdfast.testing._raises import raises
from holdfast.workspace import Omitted
from inner.values import FileChange
from support.snapshots import FOLDER, LINK, ChangingFolder, MemorySnapshot

SOURCE = {"main.py": b"print('one')\n", "lib/util.py": b"def f(): ...\n" * 40}


def text_of(lines: int, seed: int = 0) -> bytes:
    """Lines that are all different."""
    chosen = random.Random(seed)
    return b"".join(b"%d %d\n" % (n, chosen.getrandbits(160)) for n in range(lines))


class SavedFileTests(Cases):
    """Saving files with a state, and reading them."""

    def test_files_are_saved_and_read_with_a_checkpoint(self) -> None:
        chat = self.thread()

        chat.save({"n": 1}, files=MemorySnapshot(SOURCE))

        assert chat.load() == {"n": 1}
        assert list(chat.files()) == ["lib/util.py", "main.py"]
        assert chat.read_file("main.py") == SOURCE["main.py"]
        assert chat.read_files(["main.py", "lib/util.py"]) == list(SOURCE.values())

    def test_another_store_reads_the_same_files(self) -> None:
        saved = MemorySnapshot(SOURCE | {"big": text_of(3000), "empty": b""})
        self.thread().save({"n": 1}, files=saved)

        other = self.rival().thread("chat")

        assert other.files() == saved.tree
        assert other.read_file("big") == text_of(3000)
        assert other.read_file("empty") == b""

    def test_each_checkpoint_has_its_own_files(self) -> None:
        chat = self.thread()
        chat.save({}, files=MemorySnapshot(SOURCE))
        edited = {"main.py": b"print('two')\n", "new/file": b"new"}
        chat.save({}, files=MemorySnapshot(edited))

        assert list(chat.files()) == ["main.py", "new/file"]
        assert chat.read_file("main.py") == b"print('two')\n"
        assert list(chat.files("@1")) == ["lib/util.py", "main.py"]
        assert chat.read_file("main.py", "@1") == b"print('one')\n"

    def test_a_save_without_files_keeps_those_of_its_parent(self) -> None:
        chat = self.thread()
        chat.save({"list": ["a"]}, files=MemorySnapshot(SOURCE))
        chat.save({"list": ["a", "b"]})
        chat.append(list=["c"])
        chat.amend(values={"n": 1})

        assert self.rival().thread("chat").files() == MemorySnapshot(SOURCE).tree
        assert chat.read_file("main.py") == SOURCE["main.py"]

    def test_every_kind_of_save_takes_files(self) -> None:
        chat = self.thread()
        for number, save in enumerate(
            (
                lambda files: chat.save({"list": []}, files=files),
                lambda files: chat.append(list=["a"], files=files),
                lambda files: chat.extend({"list": ["b"]}, files=files),
                lambda files: chat.amend(values={"n": 1}, files=files),
            )
        ):
            save(MemorySnapshot({"number": b"%d" % number}))
            assert chat.read_file("number") == b"%d" % number

        assert chat.load() == {"list": ["a", "b"], "n": 1}

    def test_a_transaction_saves_files(self) -> None:
        with self.store.transaction() as changes:
            changes.thread("a").save({"n": 1}, files=MemorySnapshot(SOURCE))
            changes.thread("b").save({"n": 2})

        assert self.thread("a").read_file("main.py") == SOURCE["main.py"]

    def test_a_list_may_be_called_files(self) -> None:
        chat = self.thread()

        chat.append(files=["a", "b"])

        assert chat.load() == {"files": ["a", "b"]}
        with raises(NotFound, "no_files"):
            chat.files()

    def test_kinds_modes_rules_and_what_was_left_out_come_back(self) -> None:
        saved = MemorySnapshot(
            {"run": b"#!/bin/sh", "link": b"target", "empty folder": b""},
            {"run": 0o100755, "link": LINK, "empty folder": FOLDER},
            rules=("*.o", "node_modules/"),
            omitted={"video.mp4": "too large"},
        )
        self.thread().save({}, files=saved)

        found = self.rival().thread("chat").files()

        assert found == saved.tree
        assert found["link"].is_link
        assert found["empty folder"].is_directory
        assert found.omitted == (Omitted(b"video.mp4", "too large"),)
        assert self.thread().read_file("link") == b"target"
        with raises(NotFound, "no_file"):
            self.thread().read_file("empty folder")

    def test_names_that_are_not_utf8_come_back(self) -> None:
        name = b"caf\xe9 \xff".decode(errors="surrogateescape")
        self.thread().save({}, files=MemorySnapshot({name: b"x"}))

        other = self.rival().thread("chat")

        assert list(other.files()) == [name]
        assert other.read_file(name) == other.read_file(b"caf\xe9 \xff") == b"x"

    def test_any_bytes_come_back(self) -> None:
        every = bytes(range(256)) * 300
        chosen = random.Random(7).randbytes(200_000)
        files = {"every": every, "chosen": chosen, "zeros": bytes(100_000)}
        self.thread().save({}, files=MemorySnapshot(files))

        found = self.rival().thread("chat").read_files(list(files))

        assert found == list(files.values())

    def test_what_is_missing_is_said(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})
        with raises(NotFound, "no_files"):
            chat.files()
        with raises(NotFound, "no_files"):
            chat.read_file("main.py")

        chat.save({}, files=MemorySnapshot({}))

        assert len(chat.files()) == 0
        with raises(NotFound, "no_file"):
            chat.read_file("main.py")

    def test_what_is_no_workspace_is_refused(self) -> None:
        for wrong in untyped("folder", ["a"], {"a": b"b"}, 1):
            with raises(Unstorable):
                self.thread().save({}, files=wrong)

        assert self.thread().head is None

    def test_the_files_are_no_value_of_the_state(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, files=MemorySnapshot(SOURCE))
        chat.save({"n": 2}, files=MemorySnapshot({}))

        assert chat.load("@1") == {"n": 1}
        assert chat.values("n", "files", "", ref="@1") == {"n": 1}
        assert [change.path for change in chat.diff("@1").changes] == [("n",)]
        assert chat.blame("n").value == 2


class ComparedFileTests(Cases):
    """What changed in files, and which checkpoint did it."""

    def test_a_comparison_shows_lines_of_texts_and_sizes_of_others(self) -> None:
        chat = self.thread()
        old = {"text": b"a\nb\nc\n", "gone": b"x", "binary": b"\0", "run": b"#!"}
        new = {"text": b"a\nB\nc\n", "new": b"xyz", "binary": b"\0\0", "run": b"#!"}
        chat.save({}, files=MemorySnapshot(old))
        chat.save({}, files=MemorySnapshot(new, {"run": 0o100755}))

        assert chat.diff_files("@1", "@2") == (
            FileChange("changed", "binary", 1, 2),
            FileChange("removed", "gone", 1, None),
            FileChange("added", "new", None, 3),
            FileChange("mode changed", "run", 2, 2),
            FileChange(
                "changed", "text", 6, 6, ("@@ -1,3 +1,3 @@", " a", "-b", "+B", " c")
            ),
        )
        assert chat.diff_files("@2") == ()

    def test_a_checkpoint_without_files_is_compared_as_empty(self) -> None:
        chat = self.thread()
        chat.save({})
        chat.save({}, files=MemorySnapshot({"a": b"1"}))

        assert chat.diff_files("@1") == (FileChange("added", "a", None, 1),)

    def test_forks_are_compared(self) -> None:
        chat = self.thread()
        chat.save({}, files=MemorySnapshot({"a": b"1"}))
        theirs = chat.fork("fork").save({}, files=MemorySnapshot({"b": b"1"}))

        found = chat.diff_files("@", theirs)

        assert [(change.op, change.path) for change in found] == [
            ("removed", "a"),
            ("added", "b"),
        ]

    def test_the_checkpoint_that_changed_a_file_is_found(self) -> None:
        chat = self.thread()
        chat.save({})
        for word in (b"one", b"two", b"two", b"two"):
            chat.save({}, files=MemorySnapshot({"a": word, "b": bytes([chat.step])}))
        chat.save({"n": 1})

        assert chat.blame_file("a").step == 3
        assert chat.blame_file("a", "@2").step == 2
        assert chat.blame_file("b").step == 5
        with raises(NotFound, "no_file"):
            chat.blame_file("c")


class RepeatedFileTests(Cases):
    """What is stored again of files, and what is not."""

    def test_only_what_the_parent_lacks_is_read_from_the_folder(self) -> None:
        chat = self.thread()
        chat.save({}, files=MemorySnapshot(SOURCE))
        again = MemorySnapshot(
            {
                "renamed.py": SOURCE["main.py"],
                "lib/util.py": b"changed",
                "copy": b"changed",
            }
        )

        chat.save({}, files=again)

        assert again.read == ["lib/util.py"]
        assert chat.read_files(["renamed.py", "copy"]) == [
            SOURCE["main.py"],
            b"changed",
        ]

    def test_a_quiet_turn_adds_almost_nothing(self) -> None:
        files = {f"src/{n}.py": text_of(5, n) for n in range(200)}
        chat = self.thread()
        chat.save({"n": 1}, files=MemorySnapshot(files))
        plain = self._added_by(lambda: self.thread("other").save({"n": 2}))
        before = self.store.stats()

        chat.save({"n": 2}, files=MemorySnapshot(files))

        after = self.store.stats()
        assert after.segments == before.segments
        assert after.stored_bytes - before.stored_bytes < plain + 200

    def test_an_edit_of_a_large_file_adds_about_one_chunk(self) -> None:
        lines = text_of(25_000).splitlines(keepends=True)
        chat = self.thread()
        chat.save({}, files=MemorySnapshot({"big": b"".join(lines)}))
        before = self.store.stats()
        lines[12_345] = b"edited\n"

        chat.save({}, files=MemorySnapshot({"big": b"".join(lines)}))

        after = self.store.stats()
        added = after.segments - before.segments
        assert added * (16 << 10) < 50_000  # one chunk, or two, and the list
        assert after.stored_bytes - before.stored_bytes < 40_000
        assert self.rival().thread("chat").read_file("big") == b"".join(lines)

    def test_if_changed_looks_at_the_files_too(self) -> None:
        chat = self.thread()
        first = chat.save({"n": 1}, files=MemorySnapshot(SOURCE))

        same = chat.save({"n": 1}, if_changed=True, files=MemorySnapshot(SOURCE))
        other = chat.save({"n": 1}, if_changed=True, files=MemorySnapshot({}))

        assert (same.id, other.step) == (first.id, 2)

    def test_a_repeated_save_is_made_once(self) -> None:
        chat = self.thread()
        for _ in range(2):
            chat.save({"n": 1}, id="one", files=MemorySnapshot(SOURCE))

        assert chat.step == 1
        with raises(Conflict, "id_taken"):
            chat.save({"n": 1}, id="one", files=MemorySnapshot({"other": b""}))

    def test_a_save_follows_other_writers(self) -> None:
        chat, rival = self.thread(), self.rival().thread("chat")
        chat.save({"list": []}, files=MemorySnapshot(SOURCE))
        rival.extend({"list": [1]}, files=MemorySnapshot({"theirs": text_of(900)}))

        chat.extend({"list": [2]}, files=MemorySnapshot({"ours": text_of(800)}))

        assert rival.read_file("ours") == text_of(800)
        assert rival.read_file("theirs", "@2") == text_of(900)
        assert self.store.verify().ok

    def test_a_file_that_changes_before_it_is_read_is_read_again(self) -> None:
        folder = ChangingFolder({"log": b"line"}, changes=2)

        self.thread().save({}, files=folder)

        assert self.thread().read_file("log") == b"line!!"

    def test_a_file_that_never_rests_is_a_conflict_and_nothing_is_saved(self) -> None:
        with raises(Conflict, "file_changed"):
            self.thread().save({}, files=ChangingFolder({"log": b""} | SOURCE, 99))

        assert self.thread().head is None

    def _added_by(self, save: Callable[[], object]) -> int:
        before = self.store.stats().stored_bytes
        save()
        return self.store.stats().stored_bytes - before


class KeptFileTests(Cases):
    """What happens to files when threads are forked, moved, removed and carried off."""

    def test_a_fork_has_the_files_of_its_point_and_then_its_own(self) -> None:
        chat = self._three_turns()
        fork = chat.fork("fork", "@1")
        fork.save({}, files=MemorySnapshot({"main.py": text_of(700)}))
        chat.save({}, files=MemorySnapshot({"main.py": text_of(600)}))

        assert fork.files("@1") == chat.files("@1")
        assert fork.read_file("main.py") == text_of(700)
        assert chat.read_file("main.py") == text_of(600)
        assert self.store.verify().ok

    def test_a_rewind_and_an_undo_bring_the_files_of_the_checkpoint(self) -> None:
        chat = self._three_turns()

        chat.rewind("@1")
        rewound = chat.read_file("main.py")
        chat.undo()

        assert rewound == b"one"
        assert chat.read_file("main.py") == b"three"

    def test_pruned_files_are_gone_and_the_others_stay(self) -> None:
        chat = self._three_turns()
        before = self.store.stats().segments

        chat.prune(Retention(last=1))

        assert self.store.stats().segments < before
        assert chat.read_file("main.py") == b"three"
        assert self.rival().thread("chat").read_file("big") == text_of(2000, 3)
        assert self.store.verify().ok

    def test_an_archive_has_the_files(self) -> None:
        self._three_turns()
        file = io.BytesIO()
        self.store.export_to(file)

        with holdfast.open(":memory:") as other:
            other.import_archive(file)
            self._has_three_turns(other.thread("chat"))
            assert other.verify().ok

    def test_json_lines_show_states_and_no_files(self) -> None:
        self._three_turns()
        file = io.BytesIO()

        self.store.export_lines(file)

        assert b"three" not in file.getvalue()
        assert file.getvalue().count(b"\n") >= 3

    def test_a_conversation_has_files(self) -> None:
        self.store.conversations.create("a", messages=[Message.user("hello")])

        self.store.conversations.add(
            "a", Message.assistant("done"), files=MemorySnapshot(SOURCE)
        )

        chat = self.store.conversations.thread("a")
        assert chat.read_file("main.py") == SOURCE["main.py"]
        assert len(chat.load()["messages"]) == 2

    def test_a_recorder_saves_the_files_after_each_tool(self) -> None:
        folder = ChangingFolder({"n": b"0"}, changes=0)
        recorder = self.store.conversations.recorder("a", workspace=folder)
        recorder.add(Message.user("count"))
        calls = [ToolCall(id=str(n), name="count") for n in (1, 2)]
        recorder.llm_response(Message.assistant("", tool_calls=calls))
        for call in calls:
            folder.files["n"] = call.id.encode()
            recorder.tool_result(call, "counted")

        chat = self.store.conversations.thread("a")
        assert [chat.read_file("n", ref) for ref in ("@", "@~1")] == [b"2", b"1"]

    def test_the_checkpoint_of_an_agent_has_the_files_of_its_conversations(
        self,
    ) -> None:
        self.store.agents.save(Agent(id="a", name="A"))
        self.store.conversations.create("c", agent="a")
        add, chat = self.store.conversations.add, self.store.conversations.thread("c")
        add("c", Message.user("one"), files=MemorySnapshot({"n": b"1"}))
        checkpoint = self.store.agents.checkpoint("a", "before")
        add("c", Message.user("two"), files=MemorySnapshot({"n": b"2"}))

        self.store.agents.restore("a", checkpoint.id)

        assert chat.read_file("n") == b"1"
        assert self.store.verify().ok

    def test_compressing_and_compacting_keep_the_files(self) -> None:
        store = self.compressed()
        chat = self._three_turns()
        for n in range(40):
            chat.save({"n": n}, files=MemorySnapshot({"n": text_of(30, n), "k": b"k"}))

        store.compact()

        assert chat.read_file("big", "@3") == text_of(2000, 3)
        assert chat.read_file("n", "@~30") == text_of(30, 9)
        assert store.verify().ok

    def test_a_deleted_thread_leaves_no_file_behind(self) -> None:
        self._three_turns()
        self.thread("other").save({"text": LONG})
        self.thread().delete()

        assert self.store.stats().segments == 1
        assert self.store.verify().ok

    def test_many_edits_leave_few_unused_segments(self) -> None:
        chat = self.thread()
        files = {f"{n}.py": text_of(2, n) for n in range(20)}
        for n in range(0, 600, 5):
            files |= {f"{m % 20}.py": b"%d" % m for m in range(n, n + 5)}
            chat.save({}, files=MemorySnapshot(files))
        head = chat.head
        assert head is not None

        chat.prune(Retention(last=1))

        assert self.store.stats().segments < 400
        assert len(head.runs) < 40
        assert chat.read_files(list(files)) == list(files.values())
        assert self.store.verify().ok

    def _three_turns(self) -> Thread:
        chat = self.thread()
        for n, word in enumerate((b"one", b"two", b"three"), 1):
            files = {"main.py": word, "big": text_of(2000, n)}
            chat.save({"n": n}, files=MemorySnapshot(files))
        return chat

    def _has_three_turns(self, chat: Thread) -> None:
        for n, word in enumerate((b"one", b"two", b"three"), 1):
            found = chat.read_files(["main.py", "big"], f"@{n}")
            assert found == [word, text_of(2000, n)]
