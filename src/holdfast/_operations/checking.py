"""Checking that everything is as it was written, and saving what still can be read."""

from __future__ import annotations
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verification:
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Salvaged:
    ok: bool = True
