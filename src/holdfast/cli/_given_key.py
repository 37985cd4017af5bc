"""The key of an encrypted store, from the environment: it must not be in a command."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast._values.caller_key import CallerKey
from holdfast.errors import Unsupported

FILE, PASSPHRASE = "HOLDFAST_KEY_FILE", "HOLDFAST_PASSPHRASE"


def given_key() -> CallerKey | None:
    """The key file or the passphrase that the environment names, if it does."""
    file, passphrase = os.environ.get(FILE), os.environ.get(PASSPHRASE)
    if file and passphrase:
        raise Unsupported(f"{FILE} and {PASSPHRASE} are both set; unset one")
    return Path(file).expanduser() if file else passphrase or None
