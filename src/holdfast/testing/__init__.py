"""The conformance suite: what every backend of Holdfast does, sync and async.

For authors of backends, and for tests of programs that use a store. Subclass
`StoreTests` once for the sync and once for the async API, and say how the store of a
test is opened; pytest runs the rest:

    import holdfast, pytest
    from holdfast.testing import StoreTests, blocking

    class TestMine(StoreTests):
        @pytest.fixture(autouse=True)
        def place(self, tmp_path):
            self.url = f"mine:{tmp_path}/store"

        def open_store(self, **options):
            return holdfast.open(self.url, **options)

    class TestMineAsync(TestMine):
        def open_store(self, **options):
            return blocking(holdfast.open_async(self.url, **options))

``mine:`` is the name under which the backend is registered, an entry point of the group
``holdfast.backends``. A test calls `open_store` several times, and each call must open
the same store; set ``reopens = False`` if that is impossible, and the tests that need
it are skipped. Pass the options on: they are those of `holdfast.open`.

The suite has the rules that a backend can break: what comes back, in which order and
in which pages, what is refused because another writer was first, and what a removal
leaves. What is decided above the backend is tested once for all backends: the types of
values, the sharing of list elements, policies of retention, arguments that are refused,
the texts that a search shows, and the records of agents, conversations and documents.

The suite is built on `Cases`, and rules of your own can be: it opens the stores of a
test with a clock and ids that are predictable, and closes them afterwards.

`FakeClock` and `ids` make time and ids predictable in any test: pass them as ``clock``
and ``new_id``.
"""

from holdfast.testing.conformance import (
    Cases,
    FakeClock,
    StoreTests,
    blocking,
    ids,
    raises,
)

__all__ = ["Cases", "FakeClock", "StoreTests", "blocking", "ids", "raises"]
