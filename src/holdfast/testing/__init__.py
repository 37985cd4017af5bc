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

`FakeClock` and `ids` make time and ids predictable in any test: pass them as ``clock``
and ``new_id``.
"""

from holdfast.testing._archive import ArchiveTests
from holdfast.testing._blocks import BlockTests
from holdfast.testing._bridge import blocking
from holdfast.testing._conflicts import (
    ExpectationTests,
    RepetitionTests,
    TombstoneTests,
)
from holdfast.testing._deletion import CheckpointDeletionTests, DeletionTests
from holdfast.testing._erasure import ErasureTests
from holdfast.testing._family import FamilyTests
from holdfast.testing._feed import FeedTests
from holdfast.testing._forks import ForkedDeletionTests, ForkTests
from holdfast.testing._history import HistoryTests, MatchTests
from holdfast.testing._journal import JournalTests
from holdfast.testing._journal_listings import JournalListingTests
from holdfast.testing._journal_writes import (
    ExpectingEntryTests,
    FamilyEntryTests,
    ForgettingTests,
)
from holdfast.testing._labels import MarkTests
from holdfast.testing._lifecycle import CompressionTests, LifecycleTests
from holdfast.testing._listings import ListingTests, NameTests
from holdfast.testing._load import LoadTests, ReferenceTests
from holdfast.testing._moves import HardRewindTests, RewindTests, UndoTests
from holdfast.testing._prune import PruneTests, RetentionTests
from holdfast.testing._raises import raises
from holdfast.testing._references import LogReferenceTests, StepTests
from holdfast.testing._restore import PinTests, RestoreTests, RivalTests
from holdfast.testing._save import AppendTests, SaveTests
from holdfast.testing._search import SearchOrderTests, SearchTests
from holdfast.testing._search_index import SearchUpkeepTests
from holdfast.testing._shapes import ListTests, ShapeTests
from holdfast.testing._sizes import WeightTests
from holdfast.testing._sources import FakeClock, ids
from holdfast.testing._streams import StreamTests
from holdfast.testing._surplus import SurplusTests
from holdfast.testing._transactions import (
    ExpectedDeletionTests,
    KeptRecordTests,
    OnceTests,
    TransactionTests,
)

__all__ = ["FakeClock", "StoreTests", "blocking", "ids", "raises"]


class StoreTests(
    SaveTests,
    AppendTests,
    ShapeTests,
    ListTests,
    LoadTests,
    ReferenceTests,
    StepTests,
    LogReferenceTests,
    HistoryTests,
    MatchTests,
    FamilyTests,
    RewindTests,
    UndoTests,
    HardRewindTests,
    MarkTests,
    ForkTests,
    ForkedDeletionTests,
    ExpectationTests,
    RepetitionTests,
    TombstoneTests,
    JournalTests,
    ForgettingTests,
    ExpectingEntryTests,
    FamilyEntryTests,
    JournalListingTests,
    DeletionTests,
    CheckpointDeletionTests,
    ErasureTests,
    RetentionTests,
    PruneTests,
    SurplusTests,
    ListingTests,
    NameTests,
    FeedTests,
    LifecycleTests,
    CompressionTests,
    BlockTests,
    RestoreTests,
    RivalTests,
    PinTests,
    SearchTests,
    SearchOrderTests,
    SearchUpkeepTests,
    ArchiveTests,
    WeightTests,
    TransactionTests,
    OnceTests,
    KeptRecordTests,
    ExpectedDeletionTests,
    StreamTests,
):
    """Each test is one rule of a store; a subclass implements `open_store`."""
