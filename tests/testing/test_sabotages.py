"""Stores that break a promise in one way each: a quick run of the selftest notices.

What is broken is in `support.sabotage` by its name.
"""

from __future__ import annotations

import pytest

from holdfast.testing.trials import ROWS
from support import servers
from support.programs import run_program

pytestmark = pytest.mark.processes

FILES = ("file", "dir")
ONE = ("file",)
FOLDER = ("dir",)
SERVER = ("postgresql",)
ALL = (*FILES, *SERVER)

# What is broken, the row whose quick run must notice it, and on which stores.
SABOTAGES = [
    ("dropping", "kills", FILES),
    ("dropping", "compare-and-swap", FILES),
    ("dropping", "history", FILES),
    ("dropping", "ended-connections", SERVER),
    ("dropping", "sharing", FILES),
    ("dropping", "clocks", FILES),
    ("dropping", "names", FILES),
    ("dropping", "endurance", FILES),
    ("endless", "endurance", FILES),
    ("dropping", "foreign-tools", ONE),
    ("acknowledging", "hung-server", SERVER),
    ("in-two", "boundaries", FILES),
    ("in-two", "disk-failures", ONE),
    ("not-synced", "power-cuts", FILES),
    ("names-not-synced", "power-cuts", FOLDER),
    ("intents-not-synced", "power-cuts", FOLDER),
    ("not-expecting", "compare-and-swap", FILES),
    ("oldest-first", "clocks", FILES),
    ("believing", "bit-rot", FILES),
    ("believing", "tampering", ONE),
    ("unproven", "tampering", ONE),
    ("executing", "code-execution", ONE),
    ("altering", "fidelity", FILES),
    ("logging", "erasure", FILES),
    ("not-scrubbing", "erasure", FILES),
    ("unencrypted", "encryption", FILES),
    ("repeating-nonces", "encryption", FILES),
    ("unlocked", "network", ONE),
    ("entry-dropping", "loop", ALL),
    ("forgetting-effects", "loop", FILES),
    ("calling-again", "loop", ALL),
    ("calling-together", "loop", FILES),
    ("granting-threads", "grants", ALL),
    ("handing-nothing-on", "grants", FILES),
    ("used-in-forks", "sharing", FILES),
    ("forgetful", "scopes-rescued", FILES),
    ("following", "files", ONE),
    ("unchecked", "files", FILES),
    ("credulous", "files", ONE),
]
# How a row begins to tell that it failed itself, or was ended.
FAILED = ("raised", "it did not end", "its process ended")
NOTICED = ("raised Corrupt", "raised FormatMismatch")


@pytest.mark.parametrize(
    ("sabotage", "row", "stores"), SABOTAGES, ids=[f"{s}-{r}" for s, r, _ in SABOTAGES]
)
def test_a_quick_run_notices_what_is_broken(sabotage, row, stores, tmp_path):
    places = [servers.shared(servers.NAMES[-1]) if s in SERVER else s for s in stores]

    wanted = [f"{sabotage}:{row}:0:{place}" for place in places]
    results = run_program("selftest_rows", tmp_path, *wanted)

    assert {r["kind"]: r["verdict"] for r in results} == dict.fromkeys(stores, "broken")
    examples = [text for r in results for text in r["examples"]]
    # That the store itself noticed is as good; any other error is the row's own.
    failed = [text for text in examples if text.startswith(FAILED)]
    assert [text for text in failed if not text.startswith(NOTICED)] == []


def test_every_row_has_something_broken_to_notice():
    assert {row for _, row, _ in SABOTAGES} == {row.name for row in ROWS}
