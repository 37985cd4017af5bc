"""Sessions, snapshots and storage of Strands Agents in a Holdfast store.

    Strands                              Holdfast
    -------                              --------
    session                              thread ``strands-session:<session>``
    agent of a session                   thread beside it, ``.../agents/<agent>``
    message                              element of its list ``messages``
    redaction                            one checkpoint with the other text
    state of an agent, of its            values beside the messages
    conversation manager, interrupts
    Graph or Swarm of a session          thread ``.../multi_agents/<id>``
    key of a Storage                     thread ``strands-storage:<key>``
    snapshot_latest.json                 head of its thread; each write is a checkpoint
    immutable_history/snapshot_<id>.json checkpoint with the label <id> in the thread
                                         ``strands-history:<folder>``

The classes only translate; all state is in the store. Needs the extra:
``pip install 'holdfast[strands]'``.
"""

from __future__ import annotations

from holdfast.operations import import_extra

import_extra("strands.storage", "Strands Agents", "strands")

from holdfast.adapters.strands._manager import (  # noqa: E402 - see above
    HoldfastSessionManager,
)
from holdfast.adapters.strands._repository import (  # noqa: E402 - see above
    HoldfastSessionRepository,
)
from holdfast.adapters.strands._storage import (  # noqa: E402 - see above
    HoldfastStorage,
)

__all__ = ["HoldfastSessionManager", "HoldfastSessionRepository", "HoldfastStorage"]
