"""Every rule of a store: those of the published suite, and those about records.

The published suite, `StoreTests`, has what a backend can break. The rules about agents,
conversations, messages and documents are decided above the backends; our own backends
run them as well.
"""

from conformance.agent_checkpoints import AgentCheckpointTests, CheckpointRetentionTests
from conformance.agents import AgentDeletionTests, AgentListingTests, AgentTests
from conformance.attachments import AttachmentTests
from conformance.autosave import AutosaveTests
from conformance.blame import BlameTests
from conformance.conversations import (
    AddMessageTests,
    ConversationTests,
    SaveConversationTests,
)
from conformance.documents import CategoryTests, DocumentTests
from conformance.last_messages import LastMessageTests
from conformance.messages import MessageTests
from conformance.moments import MomentTests
from conformance.restore import RestoredRecordTests
from conformance.sessions import SessionRetentionTests, SessionTests
from conformance.summaries import SummaryTests, TitleTests, WindowTests
from holdfast.testing import StoreTests


class RecordTests(
    AgentTests,
    AgentListingTests,
    AgentDeletionTests,
    AgentCheckpointTests,
    CheckpointRetentionTests,
    RestoredRecordTests,
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
    BlameTests,
    MomentTests,
):
    """The rules about records that are made of threads and checkpoints."""


class ConformanceTests(StoreTests, RecordTests):
    """Every rule as one test; a subclass implements `open_store`."""
