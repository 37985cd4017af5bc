"""Tasks, their events and push notification configs of A2A servers, in a store.

    A2A SDK                          Holdfast
    -------                          --------
    task                             thread ``a2a:<owner>/<task id>`` of kind ``task``
    history, artifacts, the          list ``messages`` of its state, in this order
      message of the status
    save of a task                   one checkpoint
    task version                     value ``version`` of its state
    event of a task                  event of the stream ``a2a:<task id>``
    owner of a call context          owner of the thread
    push notification configs        thread ``a2a-push:<task id>``

`HoldfastVersionedTaskStore` and `HoldfastTaskEventStream` together serve one task by
several replicas; `HoldfastTaskStore` is for one server. All of them only translate; all
state is in the store. Needs the extra: ``pip install 'holdfast[a2a]'``.
"""

from __future__ import annotations

from holdfast.operations import import_extra

import_extra("a2a.server.cluster", "the A2A SDK", "a2a")

from holdfast.adapters.a2a._event_stream import (  # noqa: E402 - see above
    HoldfastTaskEventStream,
)
from holdfast.adapters.a2a._push_configs import (  # noqa: E402
    HoldfastPushNotificationConfigStore,
)
from holdfast.adapters.a2a._task_store import (  # noqa: E402
    HoldfastTaskStore,
    HoldfastVersionedTaskStore,
)

__all__ = [
    "HoldfastPushNotificationConfigStore",
    "HoldfastTaskEventStream",
    "HoldfastTaskStore",
    "HoldfastVersionedTaskStore",
]
