"""The protocol of deepagents over the files of a thread."""

import asyncio
import base64
import inspect
from concurrent.futures import ThreadPoolExecutor

import pytest
from deepagents.backends import CompositeBackend, StateBackend, utils
from deepagents.backends.protocol import BackendProtocol

import holdfast
from holdfast.adapters.deepagents import HoldfastBackend
from holdfast.workspace import Workspace
from inner.deepagents import search

PICTURE = bytes(range(256))


def paths(found):
    return [each["path"] for each in found]


def test_every_method_of_the_protocol_is_there():
    calls = {
        name
        for name, _ in inspect.getmembers(BackendProtocol, inspect.isfunction)
        if not name.startswith("_")
    }
    # The awaited twins are deepagents' own: they call ours in a thread.
    ours = {name for name in calls if name in vars(HoldfastBackend)}

    assert {f"a{name}" for name in ours} | ours == calls
    for name in ours:
        expected = inspect.signature(getattr(BackendProtocol, name))
        assert list(inspect.signature(getattr(HoldfastBackend, name)).parameters) == (
            list(expected.parameters)
        )


def test_files_are_written_read_edited_listed_searched_and_deleted(files):
    assert files.write("/notes/plan.md", "first\nsecond\n").path == "/notes/plan.md"
    assert files.write("/notes/old/a.py", "second = 2\n").error is None
    assert files.write("/top.py", "third").error is None

    edited = files.edit("/notes/plan.md", "first", "1st")
    assert (edited.path, edited.occurrences) == ("/notes/plan.md", 1)
    read = files.read("/notes/plan.md")
    assert read.file_data == {"content": "1st\nsecond\n", "encoding": "utf-8"}
    assert (read.start_line, read.end_line, read.total_lines) == (1, 2, 2)
    assert paths(files.ls("/").entries) == ["/notes/", "/top.py"]
    assert files.ls("/notes/").entries == [
        {"path": "/notes/old/", "is_dir": True, "size": 0},
        {"path": "/notes/plan.md", "is_dir": False, "size": 11},
    ]
    found = files.grep("second").matches
    assert found == [
        {"path": "/notes/old/a.py", "line": 1, "text": "second = 2"},
        {"path": "/notes/plan.md", "line": 2, "text": "second"},
    ]
    assert paths(files.grep("second", glob="*.py").matches) == ["/notes/old/a.py"]
    assert paths(files.glob("*.py").matches) == ["/notes/old/a.py", "/top.py"]
    assert paths(files.glob("*.py", "/notes/old").matches) == ["/notes/old/a.py"]

    assert files.delete("/notes").path == "/notes"
    assert paths(files.ls("/").entries) == ["/top.py"]


def test_the_awaited_twins_do_the_same(files):
    async def check():
        await files.awrite("/a.txt", "one\ntwo\n")
        await files.aedit("/a.txt", "one", "1")
        [uploaded] = await files.aupload_files([("/b.bin", PICTURE)])
        [loaded] = await files.adownload_files(["/b.bin"])

        assert (await files.aread("/a.txt", 1, 1)).file_data["content"] == "two\n"
        assert paths((await files.als("/")).entries) == ["/a.txt", "/b.bin"]
        assert paths((await files.agrep("two")).matches) == ["/a.txt"]
        assert paths((await files.aglob("*.bin")).matches) == ["/b.bin"]
        assert (uploaded.error, loaded.content) == (None, PICTURE)
        assert (await files.adelete("/a.txt")).error is None

    asyncio.run(check())


def test_every_change_is_a_checkpoint_that_can_be_rewound_forked_and_diffed(files):
    files.write("/plan.md", "go to Rome\n")
    files.edit("/plan.md", "Rome", "Pisa")
    files.write("/plan.md", "go to Pisa\n")  # changes nothing
    files.upload_files([("/a", b"1"), ("/b", b"2")])
    thread = files.thread

    assert [each.step for each in thread.history()] == [3, 2, 1]
    assert thread.history()[1].metadata == {"deepagents": "edit /plan.md"}
    [change] = thread.diff_files("@1", "@2")
    assert change.lines[-2:] == ("-go to Rome", "+go to Pisa")

    fork = thread.fork("other", at="@1")
    thread.rewind("@2")
    assert paths(files.ls("/").entries) == ["/plan.md"]
    assert fork.read_file("plan.md") == b"go to Rome\n"


@pytest.mark.parametrize("place", ["file", "directory", "postgres"], indirect=True)
def test_two_writers_lose_no_file_and_no_edit(place):
    address, options = place
    lines = [f"line {n}" for n in range(12)]
    with (
        holdfast.open(address, **options) as one,
        holdfast.open(address, **options) as other,
        ThreadPoolExecutor(4) as pool,
    ):
        backends = [HoldfastBackend(store, "notes") for store in (one, other)]
        backends[0].write("/all", "\n".join(lines))

        def edit(number):
            backend = backends[number % 2]
            backend.write(f"/files/{number}", str(number))
            return backend.edit("/all", f"line {number}\n", f"LINE {number}\n").error

        assert not any(pool.map(edit, range(11)))
        text = backends[1].read("/all").file_data["content"]
        assert text.count("LINE") == 11
        assert len(backends[0].ls("/files").entries) == 11
        assert backends[0].thread.head.step == 1 + 2 * 11


# --- what the protocol says about edges -----------------------------------------------


def test_windows_of_a_text_are_given_as_deepagents_does(notes):
    notes.write("/a", "1\r\n2\r\n3")

    window = notes.read("/a", 1, 1)
    assert (window.file_data["content"], window.next_offset) == ("2\n", 2)
    assert notes.read("/a", -5, 1).start_line == 1
    assert notes.read("/a", 0, 0).file_data["content"] == ""
    assert "exceeds" in notes.read("/a", 9).error
    # What is stored is what was written.
    assert notes.thread.read_file("a") == b"1\r\n2\r\n3"


def test_what_is_not_text_comes_as_base64_and_is_not_searched_or_edited(notes):
    notes.upload_files([("/x.dat", PICTURE), ("/p.pdf", b"%PDF text"), ("/e", b"")])

    for path, content in (("/x.dat", PICTURE), ("/p.pdf", b"%PDF text")):
        data = notes.read(path).file_data
        assert data["encoding"] == "base64"
        assert base64.b64decode(data["content"], validate=True) == content
    assert notes.read("/e").file_data["content"] == ""
    assert paths(notes.grep("").matches) == ["/e", "/p.pdf"]
    assert "binary" in notes.edit("/x.dat", "a", "b").error


def test_what_the_file_tool_takes_for_base64_is_base64(notes):
    names = [f"/a{suffix}" for suffix in utils._EXTENSION_TO_FILE_TYPE]
    notes.upload_files([(name, b"text") for name in names])

    assert {notes.read(name).file_data["content"] for name in names} == {"dGV4dA=="}


def test_a_search_stops_at_its_limit_also_between_two_reads(notes, monkeypatch):
    notes.upload_files([(f"/{n}", b"hit\nhit\n") for n in range(3)])
    # Each file is read by itself.
    monkeypatch.setattr(search, "READ_AT_ONCE", 1)

    found = notes.grep("hit", max_count=2)
    assert (paths(found.matches), found.truncated) == (["/0", "/0"], True)
    assert notes.grep("hit", max_count=6).truncated is False
    assert len(notes.grep("hit", "/1").matches) == 2


def test_patterns_match_as_in_the_backends_of_deepagents(notes):
    names = ["a.py", "src/b.py", "src/deep/c.py", ".env", "src/.h/d.yml", "e[1].md"]
    notes.upload_files([(f"/{name}", b"") for name in names])

    for pattern in ("*.py", "/*.py", "src/**/*.py", "*", ".env", "*.{py,yml}", "**/*"):
        wanted = sorted(
            f"/{n}" for n in names if utils.compile_grep_include_glob(pattern)(n)
        )
        assert paths(notes.glob(pattern).matches) == wanted, pattern
    assert paths(notes.glob("deep/*.py", "/src").matches) == ["/src/deep/c.py"]
    refused = notes.glob("../*.py")
    assert (refused.matches, "traversal" in refused.error) == (None, True)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/missing", "file_not_found"),
        ("/folder", "is_directory"),
        ("/", "is_directory"),
        ("/../etc/passwd", "invalid_path"),
        ("~/x", "invalid_path"),
        ("/a/.Holdfast/index", "invalid_path"),
        ("/a\0b", "invalid_path"),
        ("/\ud800\udfff", "invalid_path"),
    ],
)
def test_what_cannot_be_read_or_written_is_told_and_changes_nothing(notes, path, code):
    notes.write("/folder/file", "x")

    assert notes.read(path).error
    assert notes.edit(path, "a", "b").error
    assert notes.download_files([path])[0].error == code
    if code != "file_not_found":
        assert notes.write(path, "y").error
        assert notes.upload_files([(path, b"y")])[0].error == code
    assert notes.thread.head.step == 1


def test_a_file_cannot_be_where_a_folder_is_needed(notes):
    notes.write("/a", "x")

    assert (
        notes.write("/a/b", "y").error == "Error: '/a' is a file, and not a directory"
    )
    found = notes.upload_files([("/c/d", b"1"), ("/c", b"2"), ("/e", b"3")])
    assert [each.error for each in found] == [None, "is_directory", None]
    assert list(notes.thread.files()) == ["a", "c/d", "e"]


@pytest.mark.parametrize(
    ("old", "told"), [("", "empty"), ("z", "not found"), ("a", "appears 2 times")]
)
def test_an_edit_that_is_not_clear_is_refused(notes, old, told):
    notes.write("/x", "a a")

    assert told in notes.edit("/x", old, "b").error
    assert notes.edit("/x", "a", "b", replace_all=True).occurrences == 2


def test_files_that_a_workspace_saved_can_be_used(notes, tmp_path):
    folder = tmp_path / "project"
    (folder / "empty").mkdir(parents=True)
    (folder / "run.sh").write_text("echo hi\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("run.sh")
    notes.thread.save({}, files=Workspace(folder))

    assert paths(notes.ls("/").entries) == ["/empty/", "/link", "/run.sh"]
    assert notes.ls("/empty").entries == []
    assert "symbolic link" in notes.read("/link").error
    assert notes.write("/link", "x").error
    assert paths(notes.glob("*").matches) == ["/run.sh"]
    notes.edit("/run.sh", "hi", "ho")
    notes.write("/empty/full", "")

    Workspace(folder).restore(notes.thread, "@", force=True)
    assert (folder / "run.sh").read_text() == "echo ho\n"
    assert (folder / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (folder / "empty" / "full").exists()


def test_a_store_is_given_or_opened_by_its_address(tmp_path):
    with HoldfastBackend(tmp_path / "agents.db", "notes") as notes:
        notes.write("/a", "b")
        composite = CompositeBackend(StateBackend(), {"/memories/": notes})
        assert composite.read("/memories/a").file_data["content"] == "b"

    with holdfast.open(tmp_path / "agents.db") as store:
        assert store.thread("notes").read_file("a") == b"b"
