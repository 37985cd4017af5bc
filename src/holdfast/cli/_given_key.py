"""The key of an encrypted store, from the environment: it must not be in a command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast._api import plugins
from holdfast._values.caller_key import CallerKey
from holdfast.errors import Unsupported

if TYPE_CHECKING:  # few stores have a key
    from pathlib import Path

# No other key file is as long.
LONGER = 66
FILE, PASSPHRASE = "HOLDFAST_KEY_FILE", "HOLDFAST_PASSPHRASE"


def given_key() -> CallerKey | None:
    """The key file or the passphrase that the environment names, if it does."""
    file, passphrase = os.environ.get(FILE), os.environ.get(PASSPHRASE)
    if file and passphrase:
        raise Unsupported(f"{FILE} and {PASSPHRASE} are both set; unset one")
    if not file:
        return passphrase or None

    from pathlib import Path  # noqa: PLC0415 - few stores have a key

    return key_in(Path(file).expanduser())


def key_in(file: Path) -> CallerKey:
    """The key in a file: one key, or one that has secrets of owners too."""
    try:
        with file.open("rb") as opened:
            begins = opened.read(LONGER)
    except OSError:
        return file  # opening the store tells why
    has_owners = begins.startswith(b"{") and len(begins) == LONGER
    return plugins.find_owner_keys(file) if has_owners else file
