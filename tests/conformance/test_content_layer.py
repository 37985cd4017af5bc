"""The conformance suite over a layer that changes all content."""

from __future__ import annotations

from typing import ClassVar

import pytest

import holdfast
from conformance import hidden
from conformance.hidden import ENCODED, START, Hidden
from holdfast import Corrupt
from holdfast._port import run
from holdfast.backends import Candidates, IndexBatch, Layer
from holdfast.backends.sqlite import SqliteBackend
from holdfast.messages import Message
from holdfast.testing import StoreTests, blocking, raises
from support.samples import LONG

# Shorter contents may stand in a file by chance. Longer ones are not looked for as a
# whole, because SQLite divides them among pages.
SHORTEST, LONGEST = 24, 64
MOST = 300

QUICKLY = {"durability": "normal", "compress": True}


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory):
    """The layer as an installed package offers it."""
    folder = tmp_path_factory.mktemp("installed")
    about = folder / "hidden-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hidden\nVersion: 1\n")
    target = f"{hidden.__name__}:open_hidden"
    (about / "entry_points.txt").write_text(f"[holdfast.backends]\nhidden = {target}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield


class TestHidden(StoreTests):
    """What a layer can break."""

    segment_overhead = START

    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.path = tmp_path / "store.db"
        self.url = f"hidden:{self.path}"

    def open_store(self, **options):
        return holdfast.open(self.url, **options)

    def setup_method(self):
        super().setup_method()
        ENCODED.clear()

    def teardown_method(self):
        super().teardown_method()
        stored = self.path.read_bytes() if self.path.exists() else b""
        long = [content for content in ENCODED if len(content) >= SHORTEST]
        assert [c for c in long[:MOST] if c[:LONGEST] in stored] == []
        assert LONG[:LONGEST].encode() not in stored


class TestHiddenAsync(TestHidden):
    def open_store(self, **options):
        return blocking(holdfast.open_async(self.url, **options))


def fill(store):
    """A store that has content of every kind."""
    chat = store.thread("chat", metadata={"about": "whales " * 9})
    for n in range(5):
        chat.append(messages=[f"{n} whales " * 99])
    chat.save({"n": "whales"}, metadata={"by": "whales"}, journal={"k": "whales"})
    chat.describe(metadata={"about": "more whales"})
    chat.fork("other", at="@2").record("call", {"refunded": "whales"})
    store.prune(holdfast.Retention(last=2))
    store.conversations.create("a", messages=[Message.user("about whales")])
    store.conversations.search("whales")


def seen(store):
    """All content of a store, with the digests of its states."""
    return [
        (
            record.metadata,
            store.thread(record.id).load(),
            store.thread(record.id).journal(),
            [(c.id, c.digest, c.metadata) for c in store.thread(record.id).history()],
        )
        for record in store.threads()
    ]


FORMS = [("hidden", "sqlite"), ("sqlite", "hidden")]


@pytest.mark.parametrize(("source", "target"), FORMS)
def test_a_copy_has_the_form_of_its_own_store(tmp_path, source, target):
    with (
        holdfast.open(f"{source}:{tmp_path}/one.db") as one,
        holdfast.open(f"{target}:{tmp_path}/two.db") as two,
    ):
        fill(one)

        one.copy_to(two)

        assert seen(two) == seen(one)
        assert two.verify().ok
        digest = two.thread("chat").get().sha256
    for path, form in (("one.db", source), ("two.db", target)):
        stored = (tmp_path / path).read_bytes()
        is_plain = form == "sqlite"
        assert (b"whales" in stored) is (digest in stored) is is_plain


class Recording(Layer):
    """Keeps what goes down to the search index and the settings."""

    calls: ClassVar[list[object]] = []

    async def index(self, batch):
        self.calls.append(batch)
        await super().index(batch)

    async def scan(self, query):
        self.calls.append(query)
        return await super().scan(query)

    async def setting(self, name, value=None, *, replace=False):
        self.calls.append((name, value))
        return await super().setting(name, value, replace=replace)


def test_settings_and_texts_for_the_index_go_down_encoded(tmp_path, monkeypatch):
    def open_recording(path, **options):
        return Recording(SqliteBackend(path, **options))

    monkeypatch.setattr(hidden, "SqliteBackend", open_recording)
    with holdfast.open(f"hidden:{tmp_path}/store.db", **QUICKLY) as store:
        for n in range(100):
            store.conversations.create(messages=[Message.user(f"{n} whales " * 99)])
        assert len(store.conversations.search("7 whales", limit=None)) > 0
        run(store.runner.context.backend.setting("about", b"whales"))

    assert {IndexBatch, tuple, Candidates} <= {type(call) for call in Recording.calls}
    assert "whale" not in repr(Recording.calls)


def test_what_can_be_decoded_is_salvaged_into_a_store_of_the_same_form(tmp_path):
    with holdfast.open(f"hidden:{tmp_path}/one.db") as one:
        fill(one)

        salvaged = one.salvage(f"hidden:{tmp_path}/two.db")

        assert salvaged.lost == ()
        with holdfast.open(f"hidden:{tmp_path}/two.db") as two:
            assert two.thread("chat").load() == one.thread("chat").load()
            assert two.thread("other").journal() == one.thread("other").journal()
    assert b"whales" not in (tmp_path / "two.db").read_bytes()


def test_content_that_cannot_be_decoded_is_damage_and_is_not_given_out(tmp_path):
    """As with a wrong key, or when another program has written to the file."""
    with holdfast.open(tmp_path / "store.db") as plain:
        fill(plain)

    with holdfast.open(f"hidden:{tmp_path}/store.db") as store:
        with raises(Corrupt):
            store.thread("chat").load()
        found = store.verify()
        salvaged = store.salvage(str(tmp_path / "saved.db"))

    damaged = {str(problem) for problem in found.problems}
    assert any("thread', 'chat'" in problem for problem in damaged)
    assert any("the head of thread 'chat'" in problem for problem in damaged)
    assert any("'journal'" in problem for problem in damaged)
    assert (salvaged.checkpoints, salvaged.journal_entries) == (0, 0)


def test_a_layer_that_cannot_encode_texts_has_no_search_index(tmp_path, monkeypatch):
    monkeypatch.setattr(Hidden, "searches", False)
    with holdfast.open(f"hidden:{tmp_path}/store.db") as store:
        store.conversations.create("a", messages=[Message.user("about whales")])

        found = store.conversations.search("whales")

        assert [match.conversation for match in found] == ["a"]
        assert "search" not in store.stats().abilities
