"""Checkpoints of an agent, and what restoring one changes, as documents."""

from __future__ import annotations

from typing import Any

from holdfast.agents import AgentCheckpoint, Restored, RestorePreview
from holdfast.views.documents import iso, plain
from holdfast.views.effects import effect_document


def agent_checkpoint_document(checkpoint: AgentCheckpoint) -> dict[str, Any]:
    """A checkpoint of an agent, without what it holds."""
    return {
        "id": checkpoint.id,
        "agent": checkpoint.agent_id,
        "name": checkpoint.name,
        "kind": checkpoint.kind,
        "description": checkpoint.description,
        "conversations": checkpoint.conversations,
        "messages": checkpoint.messages,
        "size": checkpoint.size,
        "created_at": iso(checkpoint.created_at),
        "metadata": plain(checkpoint.metadata),
    }


def restore_document(done: RestorePreview) -> dict[str, Any]:
    """The changes of a restore or its preview, with every effect it leaves behind."""
    recovery = done.recovery if isinstance(done, Restored) else None
    return {
        "dry_run": recovery is None,
        "agent": done.checkpoint.agent_id,
        "checkpoint": agent_checkpoint_document(done.checkpoint),
        "recovery": recovery and agent_checkpoint_document(recovery),
        "agent_changed": done.agent_changed,
        "rewound": list(done.rewound),
        "revived": list(done.revived),
        "removed": list(done.removed),
        "unsaved_messages": done.unsaved,
        "left_behind": [effect_document(effect) for effect in done.effects],
    }
