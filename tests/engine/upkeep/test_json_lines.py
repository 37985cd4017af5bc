"""JSON Lines of a store: paths that lead nowhere, progress, threads without a save."""

import io
import json


def lines(store, **options):
    file = io.BytesIO()
    store.export_lines(file, **options)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_a_path_that_leads_nowhere_redacts_nothing(memory):
    state = {"list": [1, [2, 3]], "text": "plain"}
    memory.thread("chat").save(state)

    [line] = lines(
        memory, redact=["list[2]", "list[-3]", "list.name", "text.inner", "text[0]"]
    )

    assert line["state"] == state


def test_progress_is_told_thread_by_thread(memory):
    for name in ("one", "two"):
        memory.thread(name).save({"n": 1})
        memory.thread(name).save({"n": 2})
    told = []

    lines(memory, progress=lambda done, total: told.append((done, total)))

    assert told == [(0, 2), (1, 2), (2, 2)]


def test_a_thread_that_was_never_saved_has_no_line(memory):
    memory.thread("only recorded").record("call", 1)
    memory.thread("saved").save({"n": 1})

    [head] = lines(memory, heads=True)
    named = lines(memory, heads=True, threads=["only recorded"])

    assert head["thread"] == "saved"
    assert named == []
