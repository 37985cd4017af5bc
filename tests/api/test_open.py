"""What opening a store refuses, and what it says about it."""

import os
import subprocess
import sys

import pytest

import holdfast
from holdfast import Unstorable
from holdfast.testing import raises
from support.effort import QUICK

starts_programs = pytest.mark.skipif(QUICK, reason="starts processes: make test")


@pytest.mark.parametrize("option", [{"schema": "s"}, {"pool": (1, 2)}])
def test_an_option_of_postgresql_is_refused_for_another_store(option, path):
    [name] = option

    with raises(Unstorable) as refused:
        holdfast.open(path, **option)

    assert f"{name}: is an option of PostgreSQL" in str(refused.error)
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    "pool", [5, "12", (1,), (1, 2, 3), (1, "2"), (True, 2), (2, 1), (0, 0), (-1, 1)]
)
def test_a_pool_is_two_numbers_that_make_sense(pool):
    with raises(Unstorable) as refused:
        holdfast.open("postgresql://nowhere.invalid/db", pool=pool)

    assert "the least and the most connections" in str(refused.error)


def _opened_without(package, url, folder):
    """How opening a store ends where a package is not installed."""
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text("raise ImportError('not here')")
    return subprocess.run(
        [sys.executable, "-c", "import holdfast, sys; holdfast.open(sys.argv[1])", url],
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


@starts_programs
def test_without_its_driver_postgresql_names_the_extra(tmp_path):
    ran = _opened_without("psycopg", "postgresql://nowhere.invalid/db", tmp_path)

    assert ran.returncode != 0
    assert "pip install 'holdfast[postgres]'" in ran.stderr


@starts_programs
def test_without_sqlite_the_error_of_the_import_is_not_hidden(tmp_path):
    ran = _opened_without("apsw", ":memory:", tmp_path)

    assert ran.returncode != 0
    assert ran.stderr.splitlines()[-1] == "ImportError: not here"
