"""What a caller reads who mixes up the APIs, misspells an option or lacks a package."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

import holdfast

# Type checkers report these mistakes before a program runs.
untyped: Any = holdfast


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda store: untyped.open(":memory:", compres=True), "compress"),
        (lambda store: store.thread("t", knd="x"), "kind"),
        (lambda store: store.thread("t").save({}, lable="x"), "label"),
        (lambda store: store.thread("t").amend(vales={"a": 1}), "values"),
        (lambda store: store.thread("t").history(limt=3), "limit"),
        (lambda store: store.threads(ownr="ann"), "owner"),
        (lambda store: store.search("x", ownr="ann"), "owner"),
        (lambda store: store.import_from("x", dryrun=True), "dry_run"),
        (lambda store: store.conversations.create("c", ownr="ann"), "owner"),
        (lambda store: store.conversations.list(ownr="ann"), "owner"),
        (lambda store: untyped.Agent(id="planner", nmae="Planner"), "name"),
        (lambda store: untyped.Retention(lst=3), "last"),
    ],
)
def test_a_misspelt_option_is_refused_with_the_one_that_is_meant(call, meant):
    with untyped.open(":memory:") as store:
        with pytest.raises(TypeError, match=f"did you mean '{meant}'"):
            call(store)

        assert not store.threads()


def test_an_option_like_no_other_is_refused_with_all_of_them():
    with pytest.raises(TypeError, match="choose from agent, kind, metadata, owner"):
        untyped.open(":memory:").thread("t", zzz=1)


async def _sync_store_in_async_with():
    async with untyped.open(":memory:"):
        raise AssertionError


async def _async_store_in_with():
    with untyped.open_async(":memory:"):
        raise AssertionError


async def _open_store_in_with():
    with await untyped.open_async(":memory:"):
        raise AssertionError


async def _transaction_in_with():
    async with untyped.open_async(":memory:") as store:
        with store.transaction():
            raise AssertionError


async def _property_called():
    async with untyped.open_async(":memory:") as store:
        await store.thread("t").head()


async def _property_of_the_sync_api_called():
    with untyped.open(":memory:") as store:
        store.thread("t").save({})
        await store.thread("t").head()


@pytest.mark.parametrize(
    ("mistake", "advice"),
    [
        (_sync_store_in_async_with, "async with holdfast.open_async"),
        (_async_store_in_with, "write `async with`"),
        (_open_store_in_with, "write `async with`"),
        (_transaction_in_with, "write `async with`"),
        (_property_called, "write `await thread.head`, without parentheses"),
        (_property_of_the_sync_api_called, "write `thread.head`, without parentheses"),
    ],
)
def test_what_belongs_to_the_other_api_says_what_to_write(mistake, advice):
    with pytest.raises(TypeError, match=advice):
        asyncio.run(mistake())


def test_a_store_that_was_not_opened_yet_says_how_to_open_it():
    with pytest.raises(AttributeError, match=r"await holdfast\.open_async"):
        untyped.open_async(":memory:").thread("t")


def test_a_property_of_the_async_api_can_be_a_task():
    async def steps():
        async with untyped.open_async(":memory:") as store:
            thread = store.thread("t")
            await thread.save({})
            return await asyncio.gather(asyncio.create_task(thread.step), thread.step)

    assert asyncio.run(steps()) == [1, 1]


WITHOUT_EXTRAS = """
import pickle, sys
sys.modules["zstandard"] = sys.modules["psycopg"] = None
import holdfast
for address, options in (("a.db", {"compress": True}), ("postgresql://x", {})):
    try:
        holdfast.open(address, **options).thread("t").save({"text": "x" * 10_000})
    except ImportError as error:
        same = pickle.loads(pickle.dumps(error))
        print(isinstance(same, holdfast.Unsupported), same.code, same)
"""


def test_a_missing_extra_is_an_import_error_that_survives_pickling(tmp_path):
    command = [sys.executable, "-W", "error", "-c", WITHOUT_EXTRAS]
    ran = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True
    )

    for line, extra in zip(ran.stdout.splitlines(), ("zstd", "postgres"), strict=True):
        assert line.startswith("True missing_extra ")
        assert f"pip install 'holdfast[{extra}]'" in line
