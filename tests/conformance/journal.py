"""The journal: what the codec decides."""

from __future__ import annotations

from holdfast.errors import Unstorable
from holdfast.testing import raises
from holdfast.testing.conformance.cases import Cases


class RecordedValueTests(Cases):
    """Types of recorded values, and values that cannot be recorded."""

    def test_all_or_none_are_recorded(self) -> None:
        chat = self.thread()

        with raises(Unstorable) as refused:
            chat.record_all({"a": 1, "b": [print]})

        assert refused.error.path == "journal['b'][0]"
        assert chat.journal() == {}

    def test_recorded_values_keep_their_types(self) -> None:
        chat = self.thread()
        value = {"bytes": b"\0", "tuple": (1, {2}), "text": "x" * 10_000}

        assert chat.record("call", value) == value
        assert chat.recorded("call") == value
