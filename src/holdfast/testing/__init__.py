"""The conformance suite: what every backend of Holdfast does, through both doors.

For authors of backends, and for tests of programs that use a store. Subclass
`StoreTests` once for each door and say how the place of a test is opened; pytest runs
the rest:

    import holdfast, pytest
    from holdfast.testing import StoreTests, blocking

    class TestMine(StoreTests):
        @pytest.fixture(autouse=True)
        def place(self, tmp_path):
            self.url = f"mine:{tmp_path}/store"

        def open_store(self, **options):
            return holdfast.open(self.url, **options)

    class TestMineAwaited(TestMine):
        def open_store(self, **options):
            return blocking(holdfast.open_async(self.url, **options))

``mine:`` is what the backend is registered as, an entry point of the group
``holdfast.backends``. `open_store` is called several times within a test and has to
open the same place each time; set ``reopens = False`` if it cannot, and the tests that
need it are skipped. The options to pass on are those of `holdfast.open`.

`FakeClock` and `ids` take chance and time out of any test: pass them as ``clock`` and
``new_id``.
"""

from holdfast.testing._agents import (
    AgentDeletionTests,
    AgentListingTests,
    AgentTests,
)
from holdfast.testing._archiving import ArchiveTests
from holdfast.testing._attachments import AttachmentTests
from holdfast.testing._autosaving import AutosaveTests
from holdfast.testing._blaming import BlameTests
from holdfast.testing._bridge import blocking
from holdfast.testing._checkpoints import (
    AgentCheckpointTests,
    CheckpointRetentionTests,
)
from holdfast.testing._conflicts import (
    ExpectationTests,
    RepetitionTests,
    TombstoneTests,
)
from holdfast.testing._conversations import (
    AddingTests,
    ConversationSavingTests,
    ConversationTests,
)
from holdfast.testing._deleting import CheckpointDeletionTests, DeletionTests
from holdfast.testing._documents import CategoryTests, DocumentTests
from holdfast.testing._family import FamilyTests
from holdfast.testing._feed import FeedTests
from holdfast.testing._forking import ForkedDeletionTests, ForkTests
from holdfast.testing._glancing import LastMessageTests
from holdfast.testing._history import FindingTests, HistoryTests
from holdfast.testing._journal import JournalTests
from holdfast.testing._lifecycle import CompressionTests, LifecycleTests
from holdfast.testing._listing import ListingTests, NameTests
from holdfast.testing._loading import LoadingTests, ReferenceTests
from holdfast.testing._marking import MarkTests
from holdfast.testing._messages import MessageTests
from holdfast.testing._moving import HardRewindTests, RewindTests, UndoTests
from holdfast.testing._pruning import (
    HousekeepingTests,
    PruningTests,
    RetentionTests,
)
from holdfast.testing._raises import raises
from holdfast.testing._referring import LogReferenceTests, MomentTests, StepTests
from holdfast.testing._reindexing import SearchUpkeepTests
from holdfast.testing._restoring import RestoringTests, RivalTests
from holdfast.testing._saving import AppendingTests, SavingTests
from holdfast.testing._searching import SearchOrderTests, SearchTests
from holdfast.testing._sessions import SessionRetentionTests, SessionTests
from holdfast.testing._shapes import ListTests, ShapeTests
from holdfast.testing._sources import FakeClock, ids
from holdfast.testing._statistics import StatisticsTests
from holdfast.testing._summaries import SummaryTests, TitleTests, WindowTests
from holdfast.testing._weighing import VerifyingTests, WeightTests

__all__ = ["FakeClock", "StoreTests", "blocking", "ids", "raises"]


class StoreTests(
    SavingTests,
    AppendingTests,
    ShapeTests,
    ListTests,
    LoadingTests,
    ReferenceTests,
    StepTests,
    LogReferenceTests,
    MomentTests,
    BlameTests,
    HistoryTests,
    FindingTests,
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
    LastMessageTests,
    JournalTests,
    DeletionTests,
    CheckpointDeletionTests,
    RetentionTests,
    PruningTests,
    HousekeepingTests,
    ListingTests,
    NameTests,
    FeedTests,
    LifecycleTests,
    CompressionTests,
    AgentTests,
    AgentListingTests,
    AgentDeletionTests,
    ConversationTests,
    AddingTests,
    ConversationSavingTests,
    SummaryTests,
    TitleTests,
    WindowTests,
    SessionTests,
    SessionRetentionTests,
    MessageTests,
    AttachmentTests,
    DocumentTests,
    CategoryTests,
    AgentCheckpointTests,
    CheckpointRetentionTests,
    RestoringTests,
    RivalTests,
    AutosaveTests,
    StatisticsTests,
    SearchTests,
    SearchOrderTests,
    SearchUpkeepTests,
    ArchiveTests,
    WeightTests,
    VerifyingTests,
):
    """Every rule of a store as one test; a subclass gives `open_store`."""
