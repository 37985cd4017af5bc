"""Sources damaged at random: nothing raises or is touched, and the rest comes over."""

import json
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.importers import Counts, import_from
from support.import_sources import (
    FIXTURES,
    FORMATS,
    SOURCES,
    agent_back,
    conversation_back,
    cortex_back,
    fingerprint,
    imported,
    read,
    same,
    session_back,
    smooth_back,
    source,
    write,
)


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


ODD = [
    None,
    True,
    0,
    -1,
    2**64,
    10**400,
    1.5,
    -0.0,
    "",
    "x",
    "@",
    "../../x",
    "\ud800",
    "\0",
    "y" * 3000,
    "9999-12-31T23:59:60.999999999+00:00",
    "0001-01-01T00:00:00+23:59",
    "2026-02-30T00:00:00Z",
    [],
    {},
    [None],
    {"a": 1},
    {"imported": {"digest": 1}},
    {"$aether": 1},
    {"$hf.int": "1"},
    nested(150),
    nested(400),
]


def places(value, path=()):
    """The paths of everything in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from places(inner, (*path, key))


def changed(value, path, change):
    """A JSON value with one place changed."""
    if not path:
        return change(value)
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = changed(value[key], rest, change)
    return copy


@st.composite
def structural(draw, text):
    """A text of JSON with another value, key or number of elements somewhere."""
    value = json.loads(text)
    path = draw(st.sampled_from(list(places(value))))

    def change(old):
        if isinstance(old, dict) and old and draw(st.booleans()):
            name = draw(st.sampled_from(list(old)))
            rest = {k: v for k, v in old.items() if k != name}
            return rest | draw(st.sampled_from([{}, {f"{name}_": old[name]}]))
        if isinstance(old, list) and old and draw(st.booleans()):
            return draw(st.sampled_from([old[1:], old * 2, old[::-1]]))
        return draw(st.sampled_from(ODD))

    return json.dumps(changed(value, path, change), indent=2).encode()


@st.composite
def bytewise(draw, data):
    """Bytes with some cut off, taken out, put in or flipped."""
    at = draw(st.integers(0, len(data)))
    end = at + draw(st.integers(0, 40))
    new = draw(st.sampled_from([b"", b"\0", b"\xff", b"NaN", b'"', b"{", b"[" * 3000]))
    kept = draw(st.sampled_from([data[end:], data[at:], b""]))
    return data[:at] + new + kept


@st.composite
def damaged(draw, data):
    if draw(st.booleans()):
        return draw(bytewise(data))
    try:
        return draw(structural(data.decode()))
    except (ValueError, RecursionError):
        return draw(bytewise(data))


def damage(path, data):
    """Change one or two files of a source; gives those that stay as they were."""
    files = sorted(path.rglob("*.*")) if path.is_dir() else [path]
    files = [file for file in files if file.is_file()]
    broken = data.draw(st.sets(st.sampled_from(files), min_size=1, max_size=2))
    for file in sorted(broken):
        file.write_bytes(data.draw(damaged(file.read_bytes())))
    return [file for file in files if file not in broken]


def shown(report):
    return str(report).replace("would import", "imported")


@pytest.mark.parametrize("format_", FORMATS)
@given(data=st.data())
def test_whatever_is_damaged_is_reported_and_stays(format_, data):
    with tempfile.TemporaryDirectory() as folder, holdfast.open(":memory:") as store:
        path = source(format_, folder)
        damage(path, data)
        before = fingerprint(path)

        trial = import_from(store, path, format=format_, dry_run=True)
        report = import_from(store, path, format=format_)
        again = import_from(store, path, format=format_)

        assert shown(trial) == shown(report)
        assert again.imported == Counts()
        assert fingerprint(path) == before
        assert store.verify().problems == ()


@pytest.mark.parametrize("format_", [f for f in SOURCES if f != "echo"])
@given(data=st.data())
def test_everything_that_is_not_damaged_comes_over_whole(format_, data):
    with tempfile.TemporaryDirectory() as folder, holdfast.open(":memory:") as store:
        path = source(format_, folder)
        whole = damage(path, data)

        import_from(store, path, format=format_)

        there = {json.dumps(value, sort_keys=True) for value in BACK[format_](store)}
        expected = [json.dumps(read_any(f), sort_keys=True) for f in whole if is_own(f)]
        assert set(expected) <= there


ONE_FILE = [
    ("smooth", "agent-1/00000203-1a2b-4c3d-8e4f-000000000203.json"),
    ("cortex", "checkpoint_3.json"),
    ("oxios", "sessions/00000601-1a2b-4c3d-8e4f-000000000601.json"),
    ("aether", "agents/agent-1.json"),
    ("aether", "conversations/00000401-1a2b-4c3d-8e4f-000000000401.json"),
]


@pytest.mark.parametrize("odd", [True, 7, "x", ["x"], {"k": "v"}], ids=repr)
@pytest.mark.parametrize(("format_", "name"), ONE_FILE)
def test_a_field_of_another_type_is_kept_as_it_is_or_named(
    tmp_path, format_, name, odd
):
    original = read(FIXTURES / SOURCES[format_] / name)
    for number, place in enumerate(places(original)):
        changed_one = changed(original, place, lambda _: odd)
        path = tmp_path / str(number)
        write(path / name, changed_one)
        with holdfast.open(":memory:") as store:
            report = import_from(store, path, format=format_)

            kept = any(same(value, changed_one) for value in BACK[format_](store))
            assert kept != bool(report.damaged), place


def read_any(file):
    return read(file) if file.suffix == ".json" else file.read_text()


def is_own(file):
    """Whether a file alone decides what becomes of it in the store."""
    return file.name != "list_metadata.json" and file.parent.name != "checkpoints"


def aether_back(store):
    for thread, origin in imported(store, "aether"):
        id_ = thread.id.partition(":")[2]
        if thread.kind == "agent":
            yield agent_back(store.agents.load(id_)) | {"agent_id": origin["id"]}
        else:
            yield conversation_back(store.conversations.load(id_))


def oxios_back(store):
    for thread, _ in imported(store, "oxios"):
        id_ = thread.id.partition(":")[2]
        if thread.kind == "document":
            yield store.documents.load(id_).content
        else:
            yield session_back(store.conversations.load(id_))


def all_of_smooth(store):
    return smooth_back(store).values()


BACK = {
    "aether": aether_back,
    "cortex": cortex_back,
    "oxios": oxios_back,
    "smooth": all_of_smooth,
}
