"""The command line as a process: streams, signals, terminals and locks."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import apsw
import pytest
import shell
import stores

import holdfast
from holdfast.cli import main
from support.folders import TESTS
from support.programs import ENVIRONMENT

pytestmark = pytest.mark.processes

DEADLINE = 120.0
SAVER = """
import sys, holdfast
with holdfast.open("agents.db") as store:
    thread = store.thread("busy")
    while True:
        thread.save({"n": thread.step})
        print(flush=True)
"""
LOCKER = """
import sys, apsw
db = apsw.Connection("agents.db")
db.execute("pragma locking_mode = exclusive")
db.execute("begin exclusive")
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path):
    stores.make_support(tmp_path / "agents.db")
    return tmp_path


def started(program, folder):
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def ended(process):
    process.kill()
    process.communicate()


def error_of(ran):
    return json.loads(ran.err)["error"]


# --- importing ------------------------------------------------------------------------


def test_the_version_is_told_without_loading_click_or_the_store(tmp_path):
    program = (
        "import sys; from holdfast.cli import main; status = main(['--version']);"
        " print(status, {'click', 'rich', 'apsw', 'msgspec'} & set(sys.modules))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert ran.stdout == f"holdfast {holdfast.__version__}\n0 set()\n"


def test_rich_is_loaded_only_to_colour(folder):
    program = (
        "import sys; from holdfast.cli import main; main(sys.argv[1:]);"
        " print('rich' in sys.modules, 'mcp' in sys.modules, file=sys.stderr)"
    )

    ran = [
        subprocess.run(
            [sys.executable, "-c", program, "threads", *options],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        for options in ([], ["--color", "always"])
    ]

    assert [r.stderr for r in ran] == ["False False\n", "True False\n"]


def test_a_process_shows_the_same_help_and_errors_as_a_program(tmp_path, capsys):
    """A process loads much only when it is used, and help pages and errors use it."""
    for words in (["log", "--help"], ["--help"], ["log", "-n", "x"], ["log", "--x"]):
        ran = shell.piped(*words, folder=tmp_path)
        status = main(words)

        assert (ran.status, (ran.out, ran.err)) == (status, capsys.readouterr())


def test_a_process_shows_the_traceback_of_an_internal_error(folder):
    program = (
        "import sys, holdfast; holdfast.open = lambda *_, **__: 1 / 0;"
        " sys.argv[1:] = ['threads', '-v'];"
        " from holdfast.__main__ import start; start()"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )

    assert ran.stderr.startswith("Traceback (most recent call last):\n")
    assert ran.stderr.endswith("internal error: ZeroDivisionError: division by zero\n")
    assert ran.returncode == 70


# --- streams and signals --------------------------------------------------------------


def test_a_reader_that_goes_away_ends_the_command_quietly(tmp_path):
    with stores.opened(tmp_path / "agents.db") as store:
        thread = store.thread("long")
        for n in range(400):
            thread.save({"n": n}, metadata={"padding": "x" * 400})
    command = [*shell.HOLDFAST, "log", "-n", "400", "--ndjson"]

    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=shell.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        first = process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert json.loads(first)["step"] == 400
    assert (process.returncode, said) == (141, b"")


def test_ctrl_c_at_a_question_ends_quietly_and_changes_nothing(folder):
    parent, child = pty.openpty()
    with subprocess.Popen(
        [*shell.HOLDFAST, "rewind", "support-4812@1"],
        cwd=folder,
        env=shell.environment(),
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
    ) as process:
        os.close(child)
        shown = read_until(parent, b"[y/N] ")
        interrupt(process)
    os.close(parent)

    assert process.returncode == 130
    assert b"Traceback" not in shown
    with holdfast.open(folder / "agents.db", read_only=True) as store:
        assert store.thread("support-4812").step == 4


def interrupt(process):
    """As a person does, again if nothing happens.

    Python misses an interrupt that comes just before it begins to read an answer.
    """
    deadline = time.monotonic() + DEADLINE
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)


def read_until(terminal, text):
    shown = b""
    deadline = time.monotonic() + DEADLINE
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], deadline - time.monotonic())
        assert ready, shown
        shown += os.read(terminal, 65_536)
    return shown


def test_results_go_to_standard_output_and_the_rest_to_standard_error(folder):
    ran = shell.piped("log", "-v", folder=folder)
    quiet = shell.piped("log", "-q", folder=folder)

    assert "try-credit@4" in ran.out
    assert ran.err == "store: agents.db\nthread try-credit, which was used last\n"
    assert (quiet.out, quiet.err) == (ran.out, "")


def test_a_terminal_without_unicode_gets_ascii_and_no_failure(folder):
    with holdfast.open(folder / "agents.db") as store:
        store.thread("support-4812").save({"n": 1}, label="größer 東京")

    ran = shell.piped(
        "log",
        "--graph",
        "support-4812",
        folder=folder,
        PYTHONUTF8="0",
        PYTHONIOENCODING="ascii",
    )

    assert ran.status == 0
    assert ran.out.isascii()
    assert r"[gr\xf6\xdfer \u6771\u4eac]" in ran.out


# --- colour and pager -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "variables", "coloured"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, True),
        ([], {"TERM": "dumb"}, False),
        (["--color", "always"], {"NO_COLOR": "1", "TERM": "dumb"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_a_terminal_is_coloured_unless_somebody_objects(
    folder, arguments, variables, coloured
):
    ran = shell.on_terminal("threads", *arguments, folder=folder, **variables)

    assert ("\x1b[" in ran.out) is coloured


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_a_pipe_is_coloured_only_if_asked(folder, variables, coloured):
    ran = shell.piped("threads", folder=folder, **variables)

    assert ("\x1b[" in ran.out) is coloured


def test_what_is_longer_than_the_screen_goes_through_the_pager(tmp_path):
    with stores.opened(tmp_path / "agents.db") as store:
        thread = store.thread("long")
        for n in range(2 * shell.ROWS):
            thread.save({"n": n})
    pager = (
        f"{sys.executable} -c \"import sys; print(len(sys.stdin.readlines()), 'x')\""
    )
    everything = ["log", "-n", "80"]

    paged = shell.on_terminal(*everything, folder=tmp_path, PAGER=pager)
    ours = shell.on_terminal(
        *everything, folder=tmp_path, HOLDFAST_PAGER=pager, PAGER=""
    )
    short = shell.on_terminal("log", "-n", "3", folder=tmp_path, PAGER=pager)
    refused = shell.on_terminal(*everything, "--no-pager", folder=tmp_path, PAGER=pager)
    missing = shell.on_terminal(*everything, folder=tmp_path, PAGER="no-such-pager")
    leaving = shell.on_terminal(*everything, folder=tmp_path, PAGER="true")

    endless = shell.on_terminal("log", folder=tmp_path, PAGER=pager)
    left = shell.on_terminal("log", folder=tmp_path, PAGER="head -n 1")

    assert paged.out == ours.out == endless.out == "80 x\n"
    assert (left.status, len(left.out.splitlines())) == (0, 1)
    assert len(short.out.splitlines()) == len(["80", "79", "78", "there is more"])
    assert len(refused.out.splitlines()) == len(missing.out.splitlines()) == 80
    assert (leaving.status, leaving.out) == (0, "")


def test_more_than_is_listed_is_told_and_can_be_gone_on_with(tmp_path):
    with stores.opened(tmp_path / "agents.db") as store:
        for n in range(60):
            store.thread("long").save({"n": n})
            store.thread(f"t{n:02}").save({"n": n})

    first = shell.piped("log", "long", folder=tmp_path)
    option = first.err.split("go on with ")[1].split()
    second = shell.piped("log", "long", *option, folder=tmp_path)
    listed = json.loads(shell.piped("threads", "--json", folder=tmp_path).out)
    rest = shell.piped(
        "threads", "--after", str(listed["cursor"]), "--json", folder=tmp_path
    )

    both = [line.split()[0] for line in (first.out + second.out).splitlines()]
    assert both == [f"long@{step}" for step in range(60, 0, -1)]
    assert (second.err, listed["more"]) == ("", True)
    names = [thread["id"] for thread in listed["threads"]]
    names += [thread["id"] for thread in json.loads(rest.out)["threads"]]
    assert sorted(names) == ["long", *(f"t{n:02}" for n in range(60))]
    assert json.loads(rest.out)["more"] is False


def test_a_log_is_followed_until_ctrl_c(folder):
    with holdfast.open(folder / "agents.db") as store:
        chat = store.thread("support-4812")
        with subprocess.Popen(
            [*shell.HOLDFAST, "log", "support-4812", "--follow", "--ndjson", "-n", "2"],
            cwd=folder,
            env=shell.environment(),
            stdout=subprocess.PIPE,
        ) as process:
            steps = [json.loads(process.stdout.readline())["step"] for _ in range(2)]
            store.thread("try-credit").save({"n": 0})
            chat.save({"n": 1}, label="new")
            saved = json.loads(process.stdout.readline())
            process.send_signal(signal.SIGINT)
            process.wait(DEADLINE)

    assert steps == [3, 4]
    assert (saved["reference"], saved["label"]) == ("support-4812@5", "new")
    assert process.returncode == 130


def test_without_rich_a_terminal_gets_the_same_text_without_colour(folder):
    program = (
        "import sys; sys.modules['rich'] = None; from holdfast.cli import main;"
        " sys.exit(main(sys.argv[1:]))"
    )
    without = (sys.executable, "-c", program)

    coloured = shell.on_terminal("log", "--graph", folder=folder)
    plain = shell.on_terminal("log", "--graph", folder=folder, program=without)

    asked = shell.on_terminal(
        "log", "--color", "always", folder=folder, program=without
    )

    assert (asked.status, "holdfast[cli]" in asked.out) == (6, True)
    assert plain.status == 0
    assert plain.out == re.sub(r"\x1b\[[0-9;]*m", "", coloured.out)
    assert plain.out != coloured.out


# --- progress -------------------------------------------------------------------------


PROGRESS = """
import sys
from inner.cli import progress as shown
shown.QUIET_SECONDS = float(sys.argv[1])
with shown.ProgressReport("copying", silent=sys.argv[2] == "silent") as progress:
    for done in range(1, 4):
        progress(done, 3)
print("result")
"""


@pytest.mark.parametrize(
    ("quiet", "silent", "shown"),
    [("0", "", True), ("0", "silent", False), ("60", "", False)],
)
def test_long_work_shows_its_progress_beside_the_result(tmp_path, quiet, silent, shown):
    program = (sys.executable, "-c", PROGRESS)

    seen = shell.on_terminal(
        quiet, silent, folder=tmp_path, program=program, PYTHONPATH=str(TESTS)
    )
    piped = subprocess.run(
        [*program, quiet, silent],
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
    )

    assert ("copying" in seen.out) is shown
    assert ("100%" in seen.out) is shown
    assert piped.stdout == "result\n"
    assert piped.stderr == ("copying: 1 of 3\n" if shown else "")


# --- stored text that means harm ------------------------------------------------------


def test_json_gives_hostile_text_unaltered_in_characters_that_do_no_harm(tmp_path):
    stores.make_hostile(tmp_path / "agents.db")

    ran = shell.on_terminal("show", "@1", "--json", folder=tmp_path)
    found = json.loads(ran.out)

    assert found["checkpoint"]["thread"] == f"evil {stores.HOSTILE}"
    assert found["checkpoint"]["label"] == stores.HOSTILE
    assert found["state"] == {"plain": 1, stores.HOSTILE: stores.HOSTILE}
    assert not {"\x1b", "\x9b", "\u202e", "\r", "\x07"} & set(ran.out)


# --- stores in all conditions ---------------------------------------------------------


def test_a_store_that_others_write_to_can_be_looked_at(folder):
    saver = started(SAVER, folder)
    try:
        for _ in range(5):
            saver.stdout.readline()
        ran = [
            shell.piped(*command, folder=folder)
            for command in (["log", "busy", "-n", "5"], ["show", "busy@~1"], [])
        ]
        marked = shell.piped("tag", "support-4812", "while-busy", folder=folder)
    finally:
        ended(saver)

    assert [r.status for r in ran] == [0, 0, 0]
    assert len(ran[0].out.splitlines()) == 5
    assert (marked.status, marked.out) == (0, "support-4812@4 #while-busy\n")


def test_a_store_that_stays_locked_is_a_conflict(folder):
    locker = started(LOCKER, folder)
    try:
        locker.stdout.readline()
        ran = shell.piped(
            "tag", "support-4812", "x", "--wait", "0.05", "--json", folder=folder
        )
    finally:
        ended(locker)

    assert ran.status == 5
    assert error_of(ran)["code"] == "busy"
    assert "--wait" in error_of(ran)["hint"]


def test_a_store_of_a_newer_format_is_left_alone(tmp_path):
    db = apsw.Connection(str(tmp_path / "agents.db"))
    db.execute("create table thread (name)")
    db.execute(f"pragma application_id = {0x484F4C44}")
    db.execute("pragma user_version = 99")
    db.close()

    ran = shell.piped("threads", "--json", folder=tmp_path)

    assert (ran.status, error_of(ran)["code"]) == (7, "format_mismatch")


def test_damage_is_an_exit_status(folder):
    whole = (folder / "agents.db").read_bytes()
    (folder / "agents.db").write_bytes(whole[: len(whole) // 2])

    ran = shell.piped("threads", "--json", folder=folder)

    assert (ran.status, error_of(ran)["code"]) == (4, "corrupt")


# --- completion -----------------------------------------------------------------------


def test_completion_gives_up_on_a_store_that_does_not_answer(folder):
    locker = started(LOCKER, folder)
    words = {"_HOLDFAST_COMPLETE": "bash_complete", "COMP_WORDS": "holdfast log s"}
    try:
        locker.stdout.readline()
        ran = shell.piped(folder=folder, **words)
    finally:
        ended(locker)

    assert (ran.status, ran.out.strip(), ran.err) == (0, "", "")
