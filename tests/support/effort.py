"""How hard the tests try: quick, usual or thorough, and from which seeds."""

from __future__ import annotations

import os
import zlib

# `make quick`: no killed processes, no servers, no frameworks.
QUICK = bool(os.environ.get("HOLDFAST_QUICK"))
# `make thorough`: every combination, where the tests usually take some.
THOROUGH = bool(os.environ.get("HOLDFAST_THOROUGH"))
# How often the tests of crashes kill a writer at random.
ROUNDS = int(os.environ.get("HOLDFAST_CRASH_ROUNDS", "40"))
# How often the tests of damaged files flip a bit.
FLIPS = int(os.environ.get("HOLDFAST_BITROT_FLIPS", "40"))
# How long each fuzz of `make thorough` makes attempts.
FUZZ_SECONDS = float(os.environ.get("HOLDFAST_FUZZ_SECONDS", "300"))


def seed_of(name: str, number: int = 0) -> int:
    """The seed of a test: fixed, or with HOLDFAST_SEED another one."""
    shift = int(os.environ.get("HOLDFAST_SEED", "0"))
    return zlib.crc32(name.encode()) + number + 1000 * shift
