"""Agents as typed records, and their checkpoints.

The records are plain values; ``store.agents`` saves and loads them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast._values.keywords import OptionsMeta
from holdfast.conversations import Summary
from holdfast.effects import Effect

AUTOMATIC: Final = "automatic"
MANUAL: Final = "manual"
PRE_OPERATION: Final = "pre_operation"
RECOVERY: Final = "recovery"
KINDS: Final = (AUTOMATIC, MANUAL, PRE_OPERATION, RECOVERY)


class Agent(msgspec.Struct, kw_only=True, metaclass=OptionsMeta):
    """An agent: its identity, its configuration, and its own state.

    ``version`` counts its saves. ``active_conversations`` are the ids of conversations
    that were not archived when it was loaded. ``checkpoint`` is the one it was loaded
    from or saved as: saving it again raises `Conflict` if there is a newer one.
    """

    id: str = ""
    name: str = ""
    type: str = ""
    system_prompt: str | None = None
    capabilities: list[str] = msgspec.field(default_factory=list[str])
    config: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    state: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    created_at: int = 0
    updated_at: int = 0
    version: int = 0
    active_conversations: tuple[str, ...] = ()
    checkpoint: str | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    def set_state(self, key: str, value: Any) -> None:
        """Set a value of the agent's state."""
        self.state[key] = value

    def get_state(self, key: str, default: Any = None) -> Any:
        """A value of the agent's state, or the default."""
        return self.state.get(key, default)


# Fields that come from the thread and are not stored in its state.
ABOUT_THREAD = ("id", "updated_at", "version", "active_conversations", "checkpoint")


class AgentCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An agent and all its conversations at one moment.

    ``kind`` is automatic, manual, pre_operation or recovery; ``conversations`` and
    ``messages`` say how many it holds, ``size`` how many bytes of state.
    """

    id: str
    agent_id: str
    name: str
    kind: str
    description: str | None
    conversations: int
    messages: int
    size: int
    created_at: int
    metadata: dict[str, Any]


class AgentSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an agent's checkpoint: the agent, and its conversations.

    The conversations come without their messages, last used first;
    ``agents.load_conversation`` gives one with its messages.
    """

    checkpoint: AgentCheckpoint
    agent: Agent
    conversations: tuple[Summary, ...]


class RestorePreview(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that a restore would make.

    ``agent_changed`` says whether the agent itself goes back. The others are ids of
    conversations: ``rewound`` go back to the checkpoint, ``revived`` were deleted and
    exist again, ``removed`` were created after the checkpoint. ``unsaved`` is the
    number of messages that no checkpoint of a conversation has yet: they are passed
    over. ``effects`` are the tool calls since the checkpoint that stay in force: the
    restored state does not show them.
    """

    checkpoint: AgentCheckpoint
    agent_changed: bool
    rewound: tuple[str, ...]
    revived: tuple[str, ...]
    removed: tuple[str, ...]
    unsaved: int
    effects: tuple[Effect, ...]


class Restored(RestorePreview, frozen=True, kw_only=True):
    """The changes that a restore made; restoring ``recovery`` undoes it."""

    recovery: AgentCheckpoint
