"""Sessions and paused runs of the OpenAI Agents SDK in a Holdfast store.

    OpenAI Agents SDK                Holdfast
    -----------------                --------
    session                          conversation of the same id
    items                            messages of the conversation, unchanged
    add_items, a batch               one checkpoint
    pop_item, clear_session          one checkpoint, which can be undone
    compaction                       one checkpoint instead of a clear and an add
    RunState                         the value "paused_run" beside the messages
    tool call made `once`            effect in the journal of the conversation
    approval                         grant, used up by the call
    sandbox snapshot                 the files of the thread ``sandbox:<id>``

`HoldfastSession` only translates; all state is in the store. Needs the extra:
``pip install 'holdfast[openai-agents]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.operations import import_extra

import_extra("agents.run_state", "the OpenAI Agents SDK", "openai-agents")

from holdfast.adapters.openai_agents._runner import (  # noqa: E402 - see above
    SessionClosed,
)
from holdfast.adapters.openai_agents._session import (  # noqa: E402 - see above
    HoldfastSession,
)

if TYPE_CHECKING:
    from holdfast.adapters.openai_agents._snapshot import (
        HoldfastSnapshot,
        HoldfastSnapshotSpec,
    )

__all__ = [
    "HoldfastSession",
    "HoldfastSnapshot",
    "HoldfastSnapshotSpec",
    "SessionClosed",
]

_SNAPSHOTS = "holdfast.adapters.openai_agents._snapshot"


def __getattr__(name: str) -> object:
    # Older versions of the SDK have no sandboxes.
    if name in {"HoldfastSnapshot", "HoldfastSnapshotSpec"}:
        found: object = getattr(
            import_extra(_SNAPSHOTS, "a snapshot of a sandbox", "openai-agents"), name
        )
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
