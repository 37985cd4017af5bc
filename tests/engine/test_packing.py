"""Compressed stores whose dictionary, or the package that reads it, is missing."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast import Corrupt
from holdfast.backends.sqlite._connection import page_checksums
from holdfast.testing import raises
from support.effort import QUICK
from support.programs import ENVIRONMENT

STORED = Path(__file__).parent.parent / "fixtures" / "format-1" / "dictionary.db.gz"


def test_a_state_compressed_with_a_dictionary_that_is_lost_is_corrupt(path):
    Path(path).write_bytes(gzip.decompress(STORED.read_bytes()))
    connection = apsw.Connection(path, vfs=page_checksums())
    connection.execute("delete from setting where name like 'zstd dictionary%'")
    lost = connection.changes()
    connection.close()

    with holdfast.open(path) as store, raises(Corrupt) as raised:
        store.thread("chat").load()

    assert lost == 1
    assert "the compression dictionary" in str(raised.error)


@pytest.mark.skipif(QUICK, reason="starts a process: make test")
def test_without_zstd_compression_is_refused_with_what_to_install(path):
    program = (
        "import sys; sys.modules['zstandard'] = None; import holdfast\n"
        f"try: holdfast.open({path!r}, compress=True)\n"
        "except holdfast.Unsupported as error: print(error)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )

    assert "pip install 'holdfast[zstd]'" in done.stdout
