"""Workflows, histories and sessions of Microsoft's Agent Framework in a Holdfast store.

    Agent Framework                  Holdfast
    ---------------                  --------
    run of a workflow                thread ``workflow:<name>/<first checkpoint>``
    checkpoint of a workflow         checkpoint of the same id
    previous checkpoint              parent; resumed in the middle: fork
    state, executors' states         values of the state, one each
    messages between executors       list "messages" of the state
    scope                            scope of the store
    history of a session             thread ``history:<session>``
    message                          element of the list "messages", by its fields
    session of a `SessionStore`      thread ``session:<id>``, each `set` a checkpoint

The classes only translate; all state is in the store. Objects are stored by their
fields, and no pickle is read or written. Needs the extra:
``pip install 'holdfast[agent-framework]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.operations import import_extra

import_extra("agent_framework", "the Agent Framework", "agent-framework")

from holdfast.adapters.agent_framework._checkpoints import (  # noqa: E402 - see above
    HoldfastCheckpointStorage,
)
from holdfast.adapters.agent_framework._history import (  # noqa: E402 - see above
    HoldfastHistoryProvider,
)

if TYPE_CHECKING:
    from holdfast.adapters.agent_framework._sessions import HoldfastSessionStore

__all__ = [
    "HoldfastCheckpointStorage",
    "HoldfastHistoryProvider",
    "HoldfastSessionStore",
]


def __getattr__(name: str) -> object:
    # The framework's class is experimental: it warns, and older releases have none.
    if name == "HoldfastSessionStore":
        return getattr(import_module(f"{__name__}._sessions"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
