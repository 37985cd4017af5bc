"""The conformance suite on a SQLite file and in memory."""

import pydantic
import pytest

import holdfast
from conformance import ConformanceTests, SmokeTests
from holdfast.testing import StoreTests, raises
from support.effort import THOROUGH


class TestFile(ConformanceTests):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.url = str(tmp_path / "store.db")

    def open_store(self, **options):
        return holdfast.open(self.url, **options)


class TestMemory(StoreTests if THOROUGH else SmokeTests):
    """The same as a file but for what needs one."""

    reopens = False

    def open_store(self, **options):
        return holdfast.open(":memory:", **options)


def test_no_group_of_rules_hides_a_rule_or_a_method_of_another():
    """A second test with the same name, in another group, would never run."""
    names = [
        name
        for group in ConformanceTests.__mro__[:-1]
        for name in vars(group)
        if not name.startswith("__")
    ]

    assert [name for name in set(names) if names.count(name) > 1] == []


class Message(pydantic.BaseModel):
    role: str
    text: str = ""


class Chat(pydantic.BaseModel):
    messages: list[Message]


def test_a_state_is_loaded_as_a_pydantic_model(store):
    store.thread("chat").save({"messages": [{"role": "user"}]})

    loaded = store.thread("chat").load(type=Chat)

    assert loaded == Chat(messages=[Message(role="user")])
    with raises(holdfast.FormatMismatch):
        store.thread("chat").load(type=Message)
