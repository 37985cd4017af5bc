"""The session manager: Strands' own over our repository."""

from __future__ import annotations

from typing import Unpack

from strands.session import RepositorySessionManager

from holdfast.adapters.strands._repository import HoldfastSessionRepository
from holdfast.operations import OpenOptions
from holdfast.operations.stores import StoreOrAddress


class HoldfastSessionManager(RepositorySessionManager):
    """A session for ``Agent(session_manager=...)``; every message is a checkpoint.

    ``store`` is a `Store`, which any number of managers can share, an `AsyncStore` over
    a file, or an address, which is opened with the options of `holdfast.open`. If two
    agents work on one session at once, the slower gets a `SessionException`.
    """

    session_repository: HoldfastSessionRepository

    def __init__(
        self, session_id: str, store: StoreOrAddress, **options: Unpack[OpenOptions]
    ) -> None:
        repository = HoldfastSessionRepository(store, **options)
        super().__init__(session_id, repository)

    def __repr__(self) -> str:
        return f"HoldfastSessionManager({self.session_id!r})"

    def close(self) -> None:
        """Close the store if it was opened here."""
        self.session_repository.close()
