"""Files that another program replaces, moves or keeps in Git beside an open store."""

import shutil
import subprocess

import pytest

import holdfast
from holdfast import Corrupt, NotFound
from holdfast.testing.trials.scenario import problems_of
from support.file_clock import next_tick


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


def test_an_older_version_of_a_file_shows_the_older_state(url, folder):
    save_some(url, count=3)
    older = (folder / "chat-1.jsonl").read_bytes()
    with holdfast.open(url) as store:
        chat = store.thread("chat")
        chat.save({"n": 3})
        chat.fork("fork")
        assert chat.load() == {"n": 3}

        (folder / "chat-1.jsonl").write_bytes(older)

        assert chat.load()["n"] == 2
        assert chat.step == 3
        assert [thread.id for thread in store.threads()] == ["chat"]
        assert chat.save({"n": "new"}).step == 4
        assert problems_of(store) == []


def test_a_number_with_a_new_meaning_is_not_mistaken_for_the_old_one(url, folder):
    with holdfast.open(url) as store:
        chat = store.thread("chat")
        chat.save({"log": ["first " * 50]})
        start = (folder / "chat-1.jsonl").read_bytes()
        chat.append(log=["one " * 100])
        one = chat.get()
        (folder / "chat-1.jsonl").write_bytes(start)
        with holdfast.open(url) as other:
            other.thread("chat").append(log=["two " * 100])
            assert other.thread("chat").get().seq == one.seq

        assert chat.load() == {"log": ["first " * 50, "two " * 100]}
        with pytest.raises(NotFound):
            chat.rewind(one)
        with pytest.raises(NotFound):
            chat.save({}, expect=one)
        chat.append(log=["three"])
        assert chat.load() == {"log": ["first " * 50, "two " * 100, "three"]}
        assert problems_of(store) == []


def test_files_that_come_and_go_are_threads_that_come_and_go(url, folder):
    save_some(url, "chat")
    save_some(url, "other")
    with holdfast.open(url) as store:
        away = folder.parent / "away.jsonl"
        (folder / "chat-1.jsonl").rename(away)
        assert [thread.id for thread in store.threads()] == ["other"]
        assert store.thread("chat").head is None

        next_tick(folder)
        away.rename(folder / "any name.jsonl")
        assert {thread.id for thread in store.threads()} == {"chat", "other"}
        store.thread("chat").save({"n": 5})

        assert store.thread("chat").step == 6
        assert problems_of(store) == []
    assert b'"step":6' in (folder / "any name.jsonl").read_bytes()


def test_files_that_were_written_apart_are_named_and_the_others_go_on(url, tmp_path):
    ours, theirs = tmp_path / "store", tmp_path / "theirs"
    save_some(url, "ours")
    save_some(f"dir:{theirs}", "theirs")
    shutil.copy(theirs / "theirs-1.jsonl", ours)

    with holdfast.open(url) as store:
        assert store.thread("ours").load()["n"] == 4
        with pytest.raises(Corrupt, match=r"theirs-1\.jsonl .* written apart"):
            store.threads()
        assert "written apart" in problems_of(store)[0]
        (ours / "theirs-1.jsonl").unlink()
        assert [thread.id for thread in store.threads()] == ["ours"]


def test_a_file_whose_thread_has_the_name_of_another_is_named(url, tmp_path):
    ours, theirs = tmp_path / "store", tmp_path / "theirs"
    save_some(url, "chat")
    save_some(f"dir:{theirs}", "first")
    save_some(f"dir:{theirs}", "chat")
    shutil.copy(theirs / "chat-2.jsonl", ours)

    with holdfast.open(url) as store:
        assert store.thread("chat").load()["n"] == 4
        [problem] = problems_of(store)
        (ours / "chat-1.jsonl").unlink()
        assert store.thread("chat").get().family == 2
        assert problems_of(store) == []

    assert "chat-2.jsonl: it was written apart" in problem


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_history_can_be_kept_in_git(url, folder):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", *identity, "-C", str(folder), *arguments]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
        return ran.stdout

    save_some(url, count=2)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "two saves")
    tracked = set(git("ls-files").split())
    with holdfast.open(url) as store:
        store.thread("chat").save({"n": 2})
        changed = git("diff", "--numstat").split()
        git("commit", "--quiet", "-am", "a third")
        git("checkout", "--quiet", "HEAD~1")
        older = store.thread("chat").load()["n"]
        git("checkout", "--quiet", "-")
        newer = store.thread("chat").load()["n"]
        assert problems_of(store) == []

    assert tracked == {".gitattributes", "chat-1.jsonl", "store.jsonl"}
    assert changed == ["1", "0", "chat-1.jsonl"]
    assert (older, newer) == (1, 2)
    assert git("status", "--porcelain") == ""


def test_a_search_finds_what_is_in_files_that_git_brought_back(url, folder):
    """Their changes have numbers that the index has passed, or that are used again."""

    def found(text):
        return [match.thread for match in store.search(text)]

    with holdfast.open(url) as store:
        chat, other = store.thread("chat"), store.thread("other")
        chat.append(messages=["first needle"])
        older = (folder / "chat-1.jsonl").read_bytes()
        chat.append(messages=["second needle"])
        other.append(messages=["third needle"])
        assert found("needle") == ["other", "chat", "chat"]

        (folder / "chat-1.jsonl").write_bytes(older)
        (folder / "other-2.jsonl").unlink()
        assert found("second needle") == []
        assert found("needle") == ["chat"]

        chat.append(messages=["fourth needle"])
        assert found("fourth needle") == ["chat"]
        assert found("needle") == ["chat", "chat"]
        assert problems_of(store) == []
