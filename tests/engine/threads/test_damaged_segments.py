"""States and metadata whose segments the file has lost, or has others in place of."""

from __future__ import annotations

import apsw
import pytest

import holdfast
from holdfast import Corrupt
from holdfast.testing import raises
from inner.sqlite import page_checksums
from inner.values import checksum
from support.samples import LONG

# Two segments of a text.
TWO_SEGMENTS = "x" * 10_000


@pytest.fixture
def damaged(path):
    """A store that has the checkpoints of a thread and a document, without segments."""
    with holdfast.open(path) as store:
        store.thread("chat").save({"text": LONG}, id="saved")
        store.documents.save("note", "text", metadata={"about": LONG})
    connection = apsw.Connection(path, vfs=page_checksums())
    connection.execute("delete from segment")
    connection.close()
    with holdfast.open(path) as store:
        yield store


@pytest.mark.parametrize("reference", ["@", "saved"])
def test_a_state_without_its_segments_is_corrupt(reference, damaged):
    with raises(Corrupt):
        damaged.thread("chat").load(reference)


def test_a_save_on_a_state_without_its_segments_is_refused(damaged):
    chat = damaged.thread("chat")

    with raises(Corrupt):
        chat.save({"text": f"{LONG} and more"})

    assert chat.head.id == "saved"


def test_documents_whose_metadata_is_lost_are_not_listed_without_it(damaged):
    with raises(Corrupt):
        damaged.documents.list()


def test_a_state_whose_segments_have_changed_places_is_corrupt(path):
    with holdfast.open(path) as store:
        store.thread("chat").save({"text": TWO_SEGMENTS})
    connection = apsw.Connection(path, vfs=page_checksums())
    (a, _, first), (b, _, last) = connection.execute(
        "select key, packing, data from segment order by key"
    ).fetchall()
    connection.executemany(
        "update segment set data = ?, checksum = ? where key = ?",
        [(last, checksum(last, a * 256), a), (first, checksum(first, b * 256), b)],
    )
    connection.close()

    with holdfast.open(path) as store, raises(Corrupt):
        store.thread("chat").load()
