"""Stores in trouble, large ones, and secrets: clear documents, never a stack trace."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import apsw
from asking import asked

import holdfast

SECRET = "sk-live-4242"
MESSAGES = [{"role": "user", "content": f"Message {number}."} for number in range(300)]


def test_a_store_that_another_holds_is_busy(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        head = store.thread("case").save({"n": 1})
    with asked(path, write=True, opening={"busy_timeout": 0.05}) as viewer:
        other = apsw.Connection(path)
        other.execute("begin immediate")
        held = viewer.post("label", checkpoint=head.id, label="x")
        read = viewer.get("thread", thread="case")
        other.close()

    assert (held.status, held.code) == (423, "busy")
    assert read["id"] == "case"


def test_a_damaged_state_leaves_the_rest_readable(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        head = store.thread("case").save({"messages": MESSAGES})
    damaged = apsw.Connection(path)
    damaged.execute("update segment set data = zeroblob(length(data))")
    damaged.close()
    with asked(path) as viewer:
        rows = viewer.get("log", thread="case")["rows"]
        messages = viewer.send("GET", f"/api/1/messages?checkpoint={head.id}")
        cards = viewer.get("threads")["threads"]

    assert [row["id"] for row in rows] == [head.id]
    assert (messages.status, messages.code) == (500, "corrupt")
    assert cards[0]["steps"] == 1


def test_a_store_that_was_removed_is_not_shown_any_more(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        store.thread("case").save({"n": 1})
    with asked(path) as viewer:
        os.rename(path, path + ".away")
        gone = viewer.send("GET", "/api/1/threads")
        os.rename(path + ".away", path)

    assert (gone.status, gone.code) == (404, "store_removed")


def test_a_large_state_is_answered_in_pieces(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        text = "x" * 200_000
        many = [{"role": "user", "content": text} for _ in range(25)]
        head = store.thread("case").save({"messages": many, "big": text * 10})
    with asked(path) as viewer:
        messages = viewer.get("messages", checkpoint=head.id)
        root = viewer.get("state", checkpoint=head.id)["value"]
        some = viewer.get("state", checkpoint=head.id, path="/messages", limit=2)
        whole = viewer.get("part", checkpoint=head.id, position=24)["text"]

    first = messages["messages"][0]["text"]
    assert (first["cut"], first["length"], len(first["text"])) == (True, 200_000, 4_000)
    assert [(n["type"], n["size"]) for n in root["children"]] == [
        ("array", 25),
        ("text", 2_000_002),
    ]
    assert len(some["value"]["children"]) == 2
    assert whole == text


def test_what_is_redacted_is_in_no_answer(tmp_path):
    path = str(tmp_path / "agents.db")
    call = {"id": "c", "function": {"name": "pay", "arguments": json.dumps([SECRET])}}
    state = {
        "title": f"Title {SECRET}",
        "messages": [
            {"role": "user", "content": "a" * 3_995 + SECRET},
            {"role": "assistant", "content": SECRET, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": [{"text": SECRET}]},
        ],
        "keys": {SECRET: {"inner": [SECRET]}, "n": 1},
    }
    with holdfast.open(path) as store:
        thread = store.thread("case", owner=f"owner {SECRET}")
        first = thread.save({"n": 0})
        head = thread.save(
            state, label=SECRET, tags=[SECRET], metadata={"note": SECRET}
        )
        thread.record("k", SECRET)

    def redact(text):
        return text.replace(SECRET, "***")

    with asked(path, redact=redact) as viewer:
        bodies = [
            viewer.send("GET", f"/api/1/{route}").body
            for route in (
                "threads",
                "thread?thread=case",
                "log?thread=case",
                f"checkpoint?id={head.id}",
                f"messages?checkpoint={head.id}",
                f"state?checkpoint={head.id}",
                f"state?checkpoint={head.id}&path=/keys&depth=4",
                f"part?checkpoint={head.id}&path=/messages",
                f"part?checkpoint={head.id}&position=1&call=c",
                f"diff?from={first.id}&to={head.id}",
                f"compare?at={first.id}&at={head.id}",
                f"context?checkpoint={head.id}",
                f"blame?checkpoint={head.id}&path=/keys",
                "search?q=Live",
                "charts?thread=case",
                f"rewind?thread=case&to={first.id}",
                "export?thread=case",
            )
        ]

    assert all(b'"error":{' not in body[:20] for body in bodies)
    assert [body for body in bodies if SECRET[:6].encode() in body] == []
    assert sum(b"***" in body for body in bodies) >= 13


def test_an_exported_page_holds_the_answers_and_no_markup(tmp_path):
    path, page = str(tmp_path / "agents.db"), str(tmp_path / "case.html")
    attack = "</script><img src=x onerror=alert(1)>"
    with holdfast.open(path) as store:
        thread = store.thread("case ~*é&=")
        thread.save({"messages": [{"role": "user", "content": attack}]})
        thread.append(messages=[{"role": "assistant", "content": "Hi"}])
    command(path, "export", "--html", page, "case ~*é&=")

    with open(page, encoding="utf-8") as file:
        text = file.read()

    [inside] = re.findall(r'id="holdfast-data">(.*?)</script>', text, re.DOTALL)
    answers = json.loads(inside)
    assert attack not in text
    assert "GET thread?thread=case+%7E*%C3%A9%26%3D" in answers
    assert len([key for key in answers if key.startswith("GET messages?")]) == 2
    assert "script-src 'sha256-" in text
    assert 'src="' not in text


def test_the_command_prints_where_the_viewer_is_and_who_can_reach_it(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        store.thread("case").save({"n": 1})

    line = [sys.executable, "-m", "holdfast", "serve", "--no-open"]
    with subprocess.Popen(
        # This machine's own address, but not as the command knows it.
        [*line, "--host", "127.1", "--store", path],
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            first, _, warning = (server.stderr.readline() for _ in range(3))
            url, _, token = first.split()[-1].partition("#token=")
            about = asking(url, token, "threads")
        finally:
            server.send_signal(signal.SIGINT)

    assert server.returncode == 130
    assert about["threads"][0]["id"] == "case"
    assert "can be reached from other machines" in warning


def test_without_its_key_an_encrypted_store_shows_its_sizes(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path, key=bytes(32)) as store:
        store.thread("case").save({"n": 1})

    with asked(path, sizes_only=True) as viewer:
        about = viewer.get("store")
        other = viewer.send("GET", "/api/1/threads")

    assert (about["encrypted"], about["threads"]) == (True, 1)
    assert (other.status, other.code) == (403, "key_needed")


def test_a_browser_is_opened_without_showing_the_token_to_other_users(tmp_path):
    path, pipe = str(tmp_path / "agents.db"), str(tmp_path / "pipe")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\n{{ echo "$1"; cat "${{1#file://}}"; }} > {pipe}\n')
    browser.chmod(0o700)
    os.mkfifo(pipe)
    with holdfast.open(path) as store:
        store.thread("case").save({"n": 1})

    def opened(url, token):
        with open(pipe, encoding="utf-8") as told:
            given, page = told.read().split("\n", 1)
        return given, page, token

    line = [sys.executable, "-m", "holdfast", "serve", "--json", "--store", path]
    given, page, token = while_running(line, opened, BROWSER=str(browser))

    assert token in page
    assert token not in given
    assert not os.path.exists(given.removeprefix("file://"))


def command(path, *words):
    line = [sys.executable, "-m", "holdfast", "--store", path, *words]
    return subprocess.run(line, check=True, capture_output=True, timeout=120)


def while_running(line, ask, **environment):
    """What ``ask`` finds while a command serves a store, ended by Ctrl-C."""
    with subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    ) as server:
        try:
            told = b""
            while not told.rstrip().endswith(b"}"):
                told += server.stdout.readline()
            url, _, token = json.loads(told)["url"].partition("#token=")
            found = ask(url, token)
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=120)
    assert server.returncode == 130
    return found


def asking(url, token, route):
    headers = {"Authorization": f"Bearer {token}"}
    asked_ = urllib.request.Request(f"{url}api/1/{route}", headers=headers)
    with urllib.request.urlopen(asked_, timeout=120) as answered:
        return json.load(answered)
