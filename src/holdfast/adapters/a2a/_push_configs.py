"""The addresses that receive push notifications about tasks."""

from __future__ import annotations

from typing import Any, Unpack

from a2a.server.context import ServerCallContext
from a2a.server.owner_resolver import OwnerResolver, resolve_user_scope
from a2a.server.tasks import PushNotificationConfigStore
from a2a.types.a2a_pb2 import TaskPushNotificationConfig

from holdfast import AsyncThread
from holdfast.adapters.a2a._names import PUSH_KIND, push_thread, quoted
from holdfast.adapters.a2a._task_state import parsed, plain
from holdfast.errors import Conflict, NotFound
from holdfast.operations import OpenOptions
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled


class HoldfastPushNotificationConfigStore(PushNotificationConfigStore):
    """The push notification configs of tasks; the registering caller owns a config.

    The configs hold the tokens of their receivers; open the store with a key to encrypt
    them. The arguments are those of `HoldfastTaskStore`.
    """

    def __init__(
        self,
        store: StoreOrAddress,
        *,
        owner_resolver: OwnerResolver = resolve_user_scope,
        **options: Unpack[OpenOptions],
    ) -> None:
        self._used = UsedStore(store, **options)
        self._owner = owner_resolver

    async def set_info(
        self,
        task_id: str,
        notification_config: TaskPushNotificationConfig,
        context: ServerCallContext,
    ) -> TaskPushNotificationConfig:
        """Store a config of the caller under its id, by default the task's id."""
        config = TaskPushNotificationConfig()
        config.CopyFrom(notification_config)
        config.task_id, config.id = task_id, config.id or task_id
        owner = self._owner(context)
        thread = self._thread(task_id, owner)
        await settled(_put(thread, {_prefix(owner) + config.id: plain(config)}))
        return config

    async def get_info(
        self, task_id: str, context: ServerCallContext
    ) -> list[TaskPushNotificationConfig]:
        """The configs of a task that the caller has registered."""
        prefix = _prefix(self._owner(context))
        stored = await self._stored(task_id)
        return [_config(stored[name]) for name in stored if name.startswith(prefix)]

    async def get_info_for_dispatch(
        self, task_id: str
    ) -> list[TaskPushNotificationConfig]:
        """The configs of a task, of all owners."""
        return [_config(config) for config in (await self._stored(task_id)).values()]

    async def delete_info(
        self,
        task_id: str,
        context: ServerCallContext,
        config_id: str | None = None,
    ) -> None:
        """Delete a config of the caller, or all that the caller has for a task."""
        prefix = _prefix(self._owner(context))
        stored = await self._stored(task_id)
        going = [
            name
            for name in stored
            if name.startswith(prefix) and config_id in (None, name[len(prefix) :])
        ]
        if going:
            await settled(self._thread(task_id).amend(remove=going))

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()

    def _thread(self, task_id: str, owner: str = "") -> AsyncThread:
        store = self._used.awaited
        # The first owner with a config owns the thread, so that erasing the owner
        # erases it.
        name = push_thread(task_id)
        return store.thread(name, kind=PUSH_KIND, owner=owner or None)

    async def _stored(self, task_id: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = await self._thread(task_id).load()
        except NotFound:
            return {}
        return found


async def _put(thread: AsyncThread, values: dict[str, Any]) -> None:
    """Set values; a thread that was deleted with its task is created again."""
    try:
        await thread.amend(values=values)
    except Conflict as conflict:
        if conflict.code != "thread_deleted":
            raise
        await thread.amend(values=values, expect=None)


def _prefix(owner: str) -> str:
    return f"{quoted(owner)}/"


def _config(stored: dict[str, Any]) -> TaskPushNotificationConfig:
    return parsed(stored, TaskPushNotificationConfig())
