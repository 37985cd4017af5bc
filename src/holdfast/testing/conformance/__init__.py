"""The rules that a backend can break, in groups, and all of them as one class."""

from holdfast.testing.conformance.archive import ArchiveTests, CopyTests
from holdfast.testing.conformance.blocks import BlockTests
from holdfast.testing.conformance.bridge import blocking as blocking
from holdfast.testing.conformance.cases import Cases as Cases
from holdfast.testing.conformance.cases import FakeClock as FakeClock
from holdfast.testing.conformance.cases import ids as ids
from holdfast.testing.conformance.cases import raises as raises
from holdfast.testing.conformance.conflicts import (
    ExpectationTests,
    RepetitionTests,
    TombstoneTests,
)
from holdfast.testing.conformance.deletion import (
    CheckpointDeletionTests,
    DeletionTests,
    ErasureTests,
)
from holdfast.testing.conformance.entries import (
    ExpectingEntryTests,
    FamilyEntryTests,
    ForgettingTests,
    JournalListingTests,
)
from holdfast.testing.conformance.feed import FeedTests
from holdfast.testing.conformance.forks import ForkedDeletionTests, ForkTests
from holdfast.testing.conformance.history import FamilyTests, HistoryTests, MatchTests
from holdfast.testing.conformance.journal import JournalTests
from holdfast.testing.conformance.labels import MarkTests
from holdfast.testing.conformance.lifecycle import CompressionTests, LifecycleTests
from holdfast.testing.conformance.listings import ListingTests, NameTests, WeightTests
from holdfast.testing.conformance.load import (
    LoadTests,
    LogReferenceTests,
    ReferenceTests,
    StepTests,
)
from holdfast.testing.conformance.moves import HardRewindTests, RewindTests, UndoTests
from holdfast.testing.conformance.prune import PruneTests, RetentionTests
from holdfast.testing.conformance.queries import QueryTests
from holdfast.testing.conformance.restore import PinTests, RestoreTests, RivalTests
from holdfast.testing.conformance.save import AppendTests, SaveTests
from holdfast.testing.conformance.search import (
    SearchOrderTests,
    SearchTests,
    SearchUpkeepTests,
)
from holdfast.testing.conformance.shapes import ListTests, ShapeTests
from holdfast.testing.conformance.streams import StreamTests
from holdfast.testing.conformance.surplus import SurplusTests
from holdfast.testing.conformance.transactions import (
    ExpectedDeletionTests,
    KeptRecordTests,
    OnceTests,
    TransactionTests,
)


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
    CopyTests,
    QueryTests,
    WeightTests,
    TransactionTests,
    OnceTests,
    KeptRecordTests,
    ExpectedDeletionTests,
    StreamTests,
):
    """Each test is one rule of a store; a subclass implements `open_store`."""
