"""Every rule of a store: those of the published suite, and those decided above it.

The published suite, `StoreTests`, has what a backend can break. What the values, the
engine and the API decide is in two groups here: `ThreadTests` for threads and
checkpoints, `RecordTests` for agents, conversations, messages and documents. Our own
backends run all of them.
"""

from conformance.agent_checkpoints import (
    AgentCheckpointTests,
    CheckpointRetentionTests,
    LoadedCheckpointTests,
)
from conformance.agents import AgentDeletionTests, AgentListingTests, AgentTests
from conformance.archives import ArchiveSelectionTests
from conformance.arguments import LimitTests, OptionTests, TextTests, TooLargeTests
from conformance.attachments import AttachmentTests
from conformance.autosave import AutosaveTests
from conformance.blame import BlameTests
from conformance.compression import CompressedValueTests
from conformance.conversations import (
    AddMessageTests,
    ConversationTests,
    SaveConversationTests,
)
from conformance.documents import CategoryTests, DocumentTests
from conformance.effects import (
    ForkedEffectTests,
    GrantTests,
    KeptEffectTests,
    MergedEffectTests,
    RewoundEffectTests,
    ToldEffectTests,
    UndoneEffectTests,
)
from conformance.erasure import ErasedRecordTests
from conformance.explorations import (
    AdoptedBranchTests,
    ExplorationTests,
    ResumedExplorationTests,
)
from conformance.files import (
    ComparedFileTests,
    KeptFileTests,
    RepeatedFileTests,
    SavedFileTests,
)
from conformance.forks import ForkedStateTests
from conformance.journal import RecordedValueTests
from conformance.last_messages import LastMessageTests
from conformance.listings import ListedRecordTests
from conformance.lists import AppendedListTests, EditedListTests
from conformance.loads import DiffTests, TypedLoadTests
from conformance.loop import DurableLoopTests, OpenCallTests
from conformance.merges import MergeConflictTests, MergedFileTests, MergedForkTests
from conformance.messages import MessageTests
from conformance.moments import MomentTests
from conformance.parts import AmendTests, PartTests
from conformance.references import EarlierHeadTests, ForeignReferenceTests
from conformance.removal import RefusedRemovalTests, SelectedRemovalTests
from conformance.restore import (
    RepeatedRestoreTests,
    RestoredEffectTests,
    RestoredRecordTests,
)
from conformance.retention import (
    HousekeepingTests,
    LimitedPruneTests,
    PolicyTests,
    PrunedBranchTests,
    PrunedInPartsTests,
)
from conformance.saves import RepeatedAppendTests, SavedStateTests, UnchangedSaveTests
from conformance.search import (
    IndexingTests,
    SearchedTextTests,
    SearchScopeTests,
    SnippetTests,
)
from conformance.sessions import SessionRetentionTests, SessionTests
from conformance.statistics import StatisticsTests
from conformance.summaries import SummaryTests, TitleTests, WindowTests
from conformance.undo import TakenBackTests
from conformance.values import SizeTests, ValueTests
from conformance.verify import VerifyTests
from conformance.workers import SeveralWorkersTests
from holdfast.testing import StoreTests
from holdfast.testing.conformance.lifecycle import LifecycleTests
from holdfast.testing.conformance.load import LoadTests
from holdfast.testing.conformance.moves import UndoTests
from holdfast.testing.conformance.save import AppendTests, SaveTests
from holdfast.testing.conformance.transactions import TransactionTests
from support.effort import THOROUGH
from support.servers import GIVEN


class ThreadTests(
    SavedStateTests,
    UnchangedSaveTests,
    RepeatedAppendTests,
    ValueTests,
    SizeTests,
    EditedListTests,
    AppendedListTests,
    AmendTests,
    PartTests,
    TypedLoadTests,
    DiffTests,
    BlameTests,
    ForeignReferenceTests,
    EarlierHeadTests,
    MomentTests,
    ListedRecordTests,
    LimitTests,
    TooLargeTests,
    TextTests,
    OptionTests,
    TakenBackTests,
    ForkedStateTests,
    MergedForkTests,
    MergeConflictTests,
    MergedFileTests,
    ExplorationTests,
    ResumedExplorationTests,
    AdoptedBranchTests,
    RefusedRemovalTests,
    SelectedRemovalTests,
    PolicyTests,
    LimitedPruneTests,
    PrunedBranchTests,
    PrunedInPartsTests,
    HousekeepingTests,
    RecordedValueTests,
    CompressedValueTests,
    ArchiveSelectionTests,
    VerifyTests,
    SavedFileTests,
    ComparedFileTests,
    RepeatedFileTests,
    KeptFileTests,
):
    """The rules about threads and checkpoints that no backend decides."""


class RecordTests(
    AgentTests,
    AgentListingTests,
    AgentDeletionTests,
    ErasedRecordTests,
    AgentCheckpointTests,
    LoadedCheckpointTests,
    CheckpointRetentionTests,
    RestoredRecordTests,
    RepeatedRestoreTests,
    RestoredEffectTests,
    StatisticsTests,
    ConversationTests,
    AddMessageTests,
    SaveConversationTests,
    SummaryTests,
    TitleTests,
    WindowTests,
    SessionTests,
    SessionRetentionTests,
    MessageTests,
    LastMessageTests,
    AttachmentTests,
    DocumentTests,
    CategoryTests,
    AutosaveTests,
    DurableLoopTests,
    OpenCallTests,
    SeveralWorkersTests,
    RewoundEffectTests,
    ForkedEffectTests,
    KeptEffectTests,
    MergedEffectTests,
    ToldEffectTests,
    UndoneEffectTests,
    GrantTests,
    SearchedTextTests,
    SnippetTests,
    SearchScopeTests,
    IndexingTests,
):
    """The rules about records that are made of threads and checkpoints."""


class ConformanceTests(StoreTests, ThreadTests, RecordTests):
    """Every rule as one test; a subclass implements `open_store`."""


class LayerTests(ConformanceTests if THOROUGH else StoreTests):
    """For a layer over a backend: to what is decided above it, it is a backend."""


class SmokeTests(
    SaveTests, AppendTests, LoadTests, UndoTests, TransactionTests, LifecycleTests
):
    """Some rules, for what differs from a file by little more than its way in."""


class SecondApiTests(ConformanceTests if THOROUGH or GIVEN else StoreTests):
    """For a backend on which all rules run by the other API.

    What is decided above a backend is the same for both APIs, and all of it runs by
    both: on a file by the sync one, in a folder and on a server by the async one.
    """
