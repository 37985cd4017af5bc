"""Threads of AG-UI, the protocol of agents' user interfaces, in a Holdfast store.

    agent-framework-ag-ui            Holdfast
    ---------------------            --------
    thread of a scope                thread ``ag-ui:<scope>/<thread>``
    scope                            owner of its threads
    snapshot of a thread             checkpoint; unchanged parts are shared
    messages                         list "messages" of the state, unchanged
    state, interrupt, session_state  values of the state
    delete, clear                    the threads are deleted, with their checkpoints

`HoldfastThreadSnapshotStore` only translates; all state is in the store. Needs the
extra: ``pip install 'holdfast[ag-ui]'``.
"""

from __future__ import annotations

from holdfast.operations import import_extra

import_extra("agent_framework_ag_ui", "AG-UI of the Agent Framework", "ag-ui")

from holdfast.adapters.ag_ui._snapshots import (  # noqa: E402 - see above
    HoldfastThreadSnapshotStore,
)

__all__ = ["HoldfastThreadSnapshotStore"]
