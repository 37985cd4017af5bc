"""What is too large is refused with the limit and the way out; nothing is written.

The real limits are hundreds of megabytes; these tests set small ones.
"""

import apsw
import pytest

from holdfast import Unstorable
from holdfast.operations.threads import journal, save
from inner.engine import drafts
from support.stores import backend_of

ROOM = 5000


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(save, "LARGEST_STATE", ROOM)
    monkeypatch.setattr(drafts, "LARGEST_ELEMENT", ROOM)
    monkeypatch.setattr(journal, "LARGEST_JOURNAL_VALUE", ROOM)


def test_an_element_of_a_list_has_a_limit_and_other_values_are_cut(memory, small):
    thread = memory.thread("t")
    thread.save({"log": [], "text": "x" * (ROOM - 100)})

    with pytest.raises(Unstorable, match=r"state\.log: .* 5,000 are allowed"):
        thread.append(log=["x" * ROOM])
    with pytest.raises(Unstorable, match="keep it in a file"):
        thread.save({"log": ["x" * ROOM]})

    assert thread.step == 1


def test_the_values_of_a_state_have_a_limit_together(memory, small):
    thread = memory.thread("t")
    thread.save(dict.fromkeys("ab", "x" * 2000))

    with pytest.raises(Unstorable, match="state: takes 6,006 bytes"):
        thread.save(dict.fromkeys("abc", "x" * 2000))
    thread.save({"log": ["x" * 2000] * 2})
    with pytest.raises(Unstorable, match="state: takes"):
        thread.append(log=["x" * 2000])

    assert thread.load() == {"log": ["x" * 2000] * 2}
    assert thread.append(log=["y"]).step == 3


def test_a_value_in_the_journal_has_a_limit(memory, small):
    thread = memory.thread("t")

    with pytest.raises(Unstorable, match=r"journal\['k'\]: takes at least 5,001 bytes"):
        thread.record("k", "x" * ROOM)
    with pytest.raises(Unstorable, match="5,000 are allowed"):
        thread.save({}, journal={"k": "x" * ROOM})

    assert thread.journal() == {}
    assert thread.head is None


def test_a_row_that_sqlite_refuses_is_no_error_of_the_disk(memory):
    thread = memory.thread("t")
    thread.save({"n": 1})
    backend_of(memory).database.writer.limit(apsw.SQLITE_LIMIT_LENGTH, 100_000)

    with pytest.raises(Unstorable, match="more than SQLite holds"):
        thread.append(log=["x" * 200_000])

    assert thread.load() == {"n": 1}
