"""Registers the services of ``holdfast://`` addresses with the command line."""

from __future__ import annotations

from typing import Any, Unpack

from holdfast.adapters.google_adk._artifacts import HoldfastArtifactService
from holdfast.adapters.google_adk._memories import HoldfastMemoryService
from holdfast.adapters.google_adk._sessions import HoldfastSessionService
from holdfast.errors import Unstorable
from holdfast.operations import OpenOptions

SCHEME = "holdfast"
# The second is for addresses with a password: the framework leaves it out of its log.
SCHEMES = (SCHEME, f"{SCHEME}+postgresql")


def session_service(uri: str, **_: Any) -> HoldfastSessionService:
    """The sessions at an address such as ``holdfast://agents.db``.

    ``services.yaml`` can name this function, and the other two, as the class of a
    service.
    """
    return HoldfastSessionService(_address(uri))


def artifact_service(uri: str, **_: Any) -> HoldfastArtifactService:
    """The artifacts at an address such as ``holdfast://agents.db``."""
    return HoldfastArtifactService(_address(uri))


def memory_service(uri: str, **_: Any) -> HoldfastMemoryService:
    """The memories at an address such as ``holdfast://agents.db``."""
    return HoldfastMemoryService(_address(uri))


def register(**options: Unpack[OpenOptions]) -> None:
    """Register ``holdfast://`` addresses, as in ``adk web --session_service_uri``.

    The same for artifacts and memories. After the scheme follows an address of
    `holdfast.open`: a path or ``dir:path``. A server has the scheme
    ``holdfast+postgresql``. The options are those of `holdfast.open`, for all
    addresses. Call it in the file ``services.py`` beside the agents.
    """
    from google.adk.cli.service_registry import (  # noqa: PLC0415 - it is slow
        get_service_registry,
    )

    registry = get_service_registry()
    for scheme in SCHEMES:
        registry.register_session_service(
            scheme, lambda uri, **_: HoldfastSessionService(_address(uri), **options)
        )
        registry.register_artifact_service(
            scheme, lambda uri, **_: HoldfastArtifactService(_address(uri), **options)
        )
        registry.register_memory_service(
            scheme, lambda uri, **_: HoldfastMemoryService(_address(uri), **options)
        )


def _address(uri: str) -> str:
    scheme, _, address = uri.partition("://")
    if scheme not in SCHEMES or not address:
        text = f"must be holdfast:// and the address of a store, not {uri!r}"
        raise Unstorable("uri", text)
    technology = scheme.partition("+")[2]
    return f"{technology}://{address}" if technology else address
