"""Sessions, artifacts and memories of Google's Agent Development Kit in a store.

    Agent Development Kit            Holdfast
    ---------------------            --------
    session                          thread ``adk:<app>/<user>/<session>``
    event                            message of the thread, one checkpoint each
    state of a session               values ``state:<key>`` beside the messages
    state with ``app:``, ``user:``   ``adk-app:<app>``, ``adk-user:<app>/<user>``
    state with ``temp:``             not stored
    user, app                        owner and agent of the thread
    StaleSessionError                the head is not the one the session was loaded at
    artifact                         thread ``adk-artifact:<app>/<user>/...``
    version of an artifact           element of its list ``versions``; bytes by digest
    memory                           message of ``adk-memory:<app>/<user>/<session>``

The services only translate; all state is in the store. Needs the extra:
``pip install 'holdfast[google-adk]'``.
"""

from __future__ import annotations

from holdfast.operations import import_extra

import_extra("google.adk.sessions", "Google's Agent Development Kit", "google-adk")

from holdfast.adapters.google_adk._artifacts import (  # noqa: E402 - see above
    HoldfastArtifactService,
)
from holdfast.adapters.google_adk._memories import (  # noqa: E402 - see above
    HoldfastMemoryService,
)
from holdfast.adapters.google_adk._names import session_thread  # noqa: E402
from holdfast.adapters.google_adk._registration import (  # noqa: E402 - see above
    artifact_service,
    memory_service,
    register,
    session_service,
)
from holdfast.adapters.google_adk._sessions import (  # noqa: E402 - see above
    HoldfastSessionService,
)

__all__ = [
    "HoldfastArtifactService",
    "HoldfastMemoryService",
    "HoldfastSessionService",
    "artifact_service",
    "memory_service",
    "register",
    "session_service",
    "session_thread",
]
