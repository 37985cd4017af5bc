"""The files of a checkpoint: their list in pages, the text of one, and in Chromium."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Asked, asked
from axe_playwright_python.sync_playwright import Axe
from payday import PIXEL
from playwright.sync_api import Page, expect
from viewer_server import Served, served

import holdfast
from support.snapshots import FOLDER, LINK, MemorySnapshot

MANY = {f"src/{number:03}.py": b"x = 1\n" for number in range(210)}
SECRET = "sk-live-4242"
NOT_UTF8 = os.fsdecode(b"caf\xe9.txt")
LONG = "<b>2</b>\n" * 1_000
FIRST = {"a.py": b"one\n", "gone": b"x", "run.sh": b"true\n", **MANY}
SECOND = {
    **MANY,
    "a.py": LONG.encode(),
    "b.bin": b"\0\1",
    "empty": b"",
    "link": b"a.py",
    "pixel.png": b64decode(PIXEL),
    "run.sh": b"true\n",
    NOT_UTF8: SECRET.encode(),
}
MODES = {"empty": FOLDER, "link": LINK, "run.sh": 0o100755}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A thread whose second checkpoint changed files; the third has the same."""
    found = str(tmp_path_factory.mktemp("files") / "agents.db")
    with holdfast.open(found) as store:
        thread = store.thread("report")
        thread.save({"n": 1}, files=MemorySnapshot(FIRST))
        left_out = {"disk.iso": "too large"}
        thread.save({"n": 2}, files=MemorySnapshot(SECOND, MODES, omitted=left_out))
        thread.save({"n": 3})
        store.thread("bare").save({"n": 1})
    return found


@pytest.fixture(scope="module")
def viewer(path: str) -> Iterator[Asked]:
    with asked(path, redact=lambda text: text.replace(SECRET, "***")) as found:
        yield found


def head(viewer: Asked, thread: str = "report", at: str = "@") -> str:
    page = viewer.get("log", thread=thread, scope="line", at=at, limit=1)
    return page["rows"][0]["id"]


def test_files_come_in_pages_with_what_the_checkpoint_changed(viewer: Asked):
    second = head(viewer, at="@~1")

    page = viewer.get("files", checkpoint=second)
    rest = viewer.get("files", checkpoint=second, cursor=page["next"])

    names = [file["path"] for file in page["files"] + rest["files"]]
    paths = sorted(map(os.fsencode, SECOND))
    assert names == [path.decode("utf-8", "backslashreplace") for path in paths]
    assert (page["total"], rest["next"]) == (len(names), None)
    assert page["bytes"] == sum(map(len, SECOND.values()))
    told = {file["path"]: file for file in page["files"] + rest["files"]}
    some = ("a.py", "b.bin", "empty", "link", "run.sh", "src/000.py")
    assert [(told[n]["change"], told[n]["kind"], told[n]["mode"]) for n in some] == [
        ("changed", "file", "100644"),
        ("added", "file", "100644"),
        ("added", "folder", "40755"),
        ("added", "link", "120777"),
        ("mode changed", "file", "100755"),
        (None, "file", "100644"),
    ]
    assert page["removed"] == ["gone"]
    assert page["counts"]["removed"] == 1
    assert page["omitted"] == [{"path": "disk.iso", "reason": "too large"}]


def test_a_checkpoint_without_files_says_so(viewer: Asked):
    bare = viewer.get("files", checkpoint=head(viewer, "bare"))
    same = viewer.get("files", checkpoint=head(viewer))

    assert (bare["saved"], bare["files"]) == (False, [])
    assert (same["saved"], set(same["counts"].values())) == (True, {0})


def test_one_file_is_text_or_a_picture_or_told_by_its_size(viewer: Asked):
    id_ = head(viewer)

    text = viewer.get("file", checkpoint=id_, path="a.py")
    whole = viewer.get("part", checkpoint=id_, file=0)
    picture = viewer.get("part", checkpoint=id_, file=5)
    secret = viewer.get("file", checkpoint=id_, position=2)

    assert text["text"] == {"text": LONG[:4000], "cut": True, "length": len(LONG)}
    assert whole["text"] == LONG
    assert (picture["media"], picture["base64"]) == ("image/png", PIXEL)
    assert viewer.get("file", checkpoint=id_, path="b.bin")["text"] is None
    assert viewer.send("GET", f"/api/1/part?checkpoint={id_}&file=1").status == 400
    assert (secret["path"], secret["text"]) == ("caf\\xe9.txt", "***")


@pytest.mark.parametrize(
    "query", ["path=none", "position=999", "path=../../etc/passwd"]
)
def test_a_file_that_is_not_there_is_not_found(viewer: Asked, query: str):
    answered = viewer.send("GET", f"/api/1/file?checkpoint={head(viewer)}&{query}")

    assert (answered.status, answered.code) == (404, "no_file")


def test_a_difference_names_files_that_are_not_utf8(viewer: Asked):
    ends = {"from": head(viewer, at="@~2"), "to": head(viewer)}

    found = viewer.get("diff", **ends)

    assert "caf\\xe9.txt" in [file["path"] for file in found["files"]]


@pytest.fixture
def shown(path: str) -> Iterator[Served]:
    with served(path) as server:
        yield server


def test_files_are_listed_opened_and_stay_open_in_an_exported_file_too(
    shown: Served, page: Page, tmp_path: Path
):
    page.goto(shown.page(t="report"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    download.value.save_as(tmp_path / "report.html")
    page.keyboard.press("9")
    panel = page.get_by_role("tabpanel")
    expect(panel.locator(".counts")).to_contain_text("217 files")
    panel.get_by_role("button", name="200 of 217 files").click()
    expect(panel.locator(".change")).to_have_count(217)
    picture = panel.locator("[data-anchor='pixel.png']")
    picture.locator("summary").click()
    picture.get_by_role("button", name="image").click()
    expect(picture.locator("img")).to_have_js_property("naturalWidth", 1)
    opened = panel.locator("[data-anchor='a.py']")
    opened.locator("summary").click()
    opened.get_by_role("button", name="Show all 9,000 characters").click()
    expect(opened.locator("pre")).to_have_text(LONG)
    expect(opened.locator(".command")).to_contain_text(":a.py")

    page.goto((tmp_path / "report.html").as_uri())
    page.get_by_role("option").filter(has_text="report").first.click()
    page.get_by_role("tab", name="Files").click()
    expect(panel.locator(".counts")).to_contain_text("none changed here")
    opened.locator("summary").click()
    expect(opened.locator("pre")).to_contain_text("<b>2</b>")
    some = {"include": [[".counts"], ["[data-anchor='a.py']"], [".page"], [".names"]]}
    assert Axe().run(page, context=some).response["violations"] == []
    page.keyboard.press("Home")
    expect(opened.locator("pre")).to_have_text("one\n")
    expect(panel.locator("[data-anchor='gone']")).to_contain_text("1 B · 644 · added")
