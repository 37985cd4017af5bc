"""Artifacts of the framework: a thread each, with all versions in its state."""

from __future__ import annotations

from typing import Any

import msgspec
from google.adk.artifacts import BaseArtifactService
from google.adk.artifacts.base_artifact_service import ArtifactVersion, ensure_part
from google.adk.errors.input_validation_error import InputValidationError
from google.adk.platform import time as platform_time
from google.genai import types

from holdfast.adapters.google_adk._names import ARTIFACT, ArtifactKey, parts_of
from holdfast.adapters.google_adk._store_user import StoreUser
from holdfast.adapters.google_adk._versions import (
    VERSIONS,
    Content,
    Version,
    chosen,
    described,
    part_of,
    target_of,
    versions_in,
)
from holdfast.errors import Conflict, NotFound
from holdfast.operations.stores import settled

# How many references to other artifacts one load follows.
MOST_REFERENCES = 5


class HoldfastArtifactService(StoreUser, BaseArtifactService):
    """Keeps the artifacts of the Agent Development Kit in a store.

    ``store`` is as for `HoldfastSessionService`. Equal contents of an artifact are
    stored once. All versions are in the newest state of the artifact, so that a
    retention of the store removes none.
    """

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Save a new version, durable when this returns; the first one is 0.

        Without a session, or with a name that begins with ``user:``, the artifact is
        the user's and is seen in all sessions.
        """
        key = ArtifactKey.of(app_name, user_id, session_id, filename)
        part = ensure_part(artifact)
        target_of(key, part)
        content = Content.of(part)
        return await settled(self._save(key, content, custom_metadata or {}))

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """A version; without a number the last one. ``None`` if there is none."""
        key = ArtifactKey.of(app_name, user_id, session_id, filename)
        for _ in range(MOST_REFERENCES + 1):
            part = await self._load(key, version)
            target = target_of(key, part) if part else None
            if target is None:
                return part
            key, version = target
        text = f"artifact {filename!r} refers to another one, and so on without an end"
        raise InputValidationError(text)

    async def list_artifact_keys(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        """The names of the artifacts of a session and of its user, sorted."""
        found: list[str] = []
        for session in {None, session_id}:
            folder = ArtifactKey(app_name, user_id, session, "").thread
            page = await self._store.threads(kind=ARTIFACT, prefix=folder, limit=None)
            found += [parts_of(thread.id)[-1] for thread in page]
        return sorted(found)

    async def delete_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
    ) -> None:
        """Delete an artifact with all its versions."""
        key = ArtifactKey.of(app_name, user_id, session_id, filename)
        await settled(self._store.delete(key.thread))

    async def list_versions(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
    ) -> list[int]:
        """The numbers of all versions."""
        key = ArtifactKey.of(app_name, user_id, session_id, filename)
        return [version.number for version in await self._versions(key)]

    async def list_artifact_versions(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
    ) -> list[ArtifactVersion]:
        """All versions without their contents."""
        key = ArtifactKey.of(app_name, user_id, session_id, filename)
        return [described(key, version) for version in await self._versions(key)]

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """A version without its content, the last one without a number."""
        key = ArtifactKey.of(app_name, user_id, session_id, filename)
        found = chosen(await self._versions(key), version)
        return described(key, found) if found else None

    # --- within -----------------------------------------------------------------------

    async def _save(
        self, key: ArtifactKey, content: Content, metadata: dict[str, Any]
    ) -> int:
        owner, agent = key.user or None, key.app or None
        thread = self._store.thread(key.thread, kind=ARTIFACT, owner=owner, agent=agent)
        while True:
            head = await thread.head
            last = await thread.tail(VERSIONS, 1, ref=head) if head else []
            number = last[0]["number"] + 1 if last else 0
            time = platform_time.get_time()
            version = Version(number, content.part, content.name, metadata, time)
            added = {VERSIONS: [msgspec.structs.asdict(version)]}
            try:
                await thread.amend(lists=added, values=content.values, expect=head)
            except Conflict:
                continue  # another worker has saved this version
            return number

    async def _versions(self, key: ArtifactKey) -> list[Version]:
        try:
            return versions_in(await self._store.thread(key.thread).values(VERSIONS))
        except NotFound:
            return []

    async def _load(self, key: ArtifactKey, number: int | None) -> types.Part | None:
        version = chosen(await self._versions(key), number)
        if version is None:
            return None
        name = version.content
        thread = self._store.thread(key.thread)
        return part_of(version, await thread.values(name) if name else {})
