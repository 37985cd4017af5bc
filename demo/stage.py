"""What the chapters share: where things are kept, and who worked on them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from demo.screen import Screen
from demo.shop import NAMES, Shop


@dataclass(slots=True)
class Stage:
    """The folder of one run of the demo and the screen it is shown on."""

    screen: Screen
    folder: str
    orders: int = len(NAMES)
    processes: list[int] = field(default_factory=list)
    acknowledged: int = 0  # the last step the agent was told is saved

    @property
    def path(self) -> str:
        return os.path.join(self.folder, "agents.db")

    @property
    def shop(self) -> Shop:
        return Shop(os.path.join(self.folder, "ledger.jsonl"))

    @property
    def clerks_path(self) -> str:
        return os.path.join(self.folder, "clerk.db")

    @property
    def clerks_shop(self) -> Shop:
        return Shop(os.path.join(self.folder, "clerk.jsonl"))
