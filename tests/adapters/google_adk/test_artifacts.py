"""Artifacts are kept as the framework's own service does it, each content once."""

import asyncio

import pytest
from google.adk.artifacts import InMemoryArtifactService
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from adapters.google_adk.agents import HERE, ME, opened
from holdfast.adapters.google_adk import HoldfastArtifactService

FILE = {**HERE, "filename": "plan.txt"}
MINE = {**HERE, "filename": "user:me.png"}


def data(content, kind="image/png"):
    return types.Part(inline_data=types.Blob(mime_type=kind, data=content))


def reference(address):
    return types.Part(file_data=types.FileData(file_uri=address))


@pytest.fixture
def everywhere(place):
    """Runs a coroutine function with a service on each backend."""

    def run(body):
        async def within():
            async with opened(place) as store:
                await body(HoldfastArtifactService(store), store)

        asyncio.run(within())

    return run


def on_a_file(body, tmp_path):
    async def within():
        async with HoldfastArtifactService(tmp_path / "agents.db") as service:
            await body(service)

    asyncio.run(within())


PARTS = [
    types.Part(text="one"),
    data(b"\xff\x00" * 5000, "x/y"),
    types.Part(text=""),
    {"inlineData": {"mimeType": "text/csv", "data": "YSxi", "displayName": "t"}},
    types.Part(file_data=types.FileData(file_uri="gs://b/f", mime_type="a/b")),
    data(b"", "application/octet-stream"),
]


async def a_life(service):
    """What a service shows of some artifacts."""
    shown = []

    async def look():
        for where in (FILE, MINE, {**FILE, "session_id": "s2"}):
            for version in (None, 0, 1, 5, 99):
                shown.append(await service.load_artifact(**where, version=version))
                found = await service.get_artifact_version(**where, version=version)
                shown.append(found and described(found))
            shown.append(await service.list_versions(**where))
            found = await service.list_artifact_versions(**where)
            shown.append([described(version) for version in found])
        for session in ("s1", None, "s2"):
            keys = await service.list_artifact_keys(**ME, session_id=session)
            shown.append(keys)

    await look()
    for part in PARTS:
        about = {"custom_metadata": {"of": "me"}}
        shown.append(await service.save_artifact(**FILE, artifact=part, **about))
    shown.append(await service.save_artifact(**MINE, artifact=data(b"me")))
    elsewhere = {**MINE, "session_id": None}
    shown.append(await service.save_artifact(**elsewhere, artifact=data(b"you")))
    await look()
    await service.delete_artifact(**FILE)
    await service.delete_artifact(**FILE)
    await look()
    shown.append(await service.save_artifact(**FILE, artifact=PARTS[0]))
    return shown


def described(version):
    return version.model_dump(exclude={"canonical_uri", "create_time"})


def test_everything_is_shown_as_the_framework_keeps_it_in_memory(everywhere):
    expected = asyncio.run(a_life(InMemoryArtifactService()))

    async def body(service, _):
        assert await a_life(service) == expected

    everywhere(body)


def test_equal_contents_are_stored_once_and_pruning_removes_no_version(everywhere):
    from holdfast import Retention

    large = bytes(range(256)) * 400

    async def body(service, store):
        for content in (large, b"other", large, large):
            await service.save_artifact(**FILE, artifact=data(content))
        [thread] = await store.threads()
        assert thread.head.size < 1.5 * len(large)
        await store.prune(Retention(last=1))

        for version in (0, 2, 3):
            found = await service.load_artifact(**FILE, version=version)
            assert found.inline_data.data == large
        assert await service.list_versions(**FILE) == [0, 1, 2, 3]

    everywhere(body)


def test_workers_that_save_at_once_get_different_versions(everywhere):
    async def body(service, _):
        parts = [types.Part(text=str(number)) for number in range(8)]
        versions = await asyncio.gather(
            *(service.save_artifact(**FILE, artifact=part) for part in parts)
        )
        assert sorted(versions) == list(range(8))
        for version, part in zip(versions, parts, strict=True):
            assert await service.load_artifact(**FILE, version=version) == part

    everywhere(body)


def test_an_artifact_without_a_session_is_the_users(tmp_path):
    async def body(service):
        await service.save_artifact(**ME, filename="a", artifact=data(b"x"))

        assert await service.load_artifact(**HERE, filename="user:a") == data(b"x")
        assert await service.load_artifact(**ME, filename="a") == data(b"x")
        assert await service.load_artifact(**HERE, filename="a") is None
        assert await service.list_artifact_keys(**HERE) == ["user:a"]

    on_a_file(body, tmp_path)


def test_a_reference_is_followed_within_its_session_and_user(tmp_path):
    async def body(service):
        await service.save_artifact(**FILE, artifact=data(b"x"))
        await service.save_artifact(**MINE, artifact=data(b"me"))
        for where in (FILE, MINE):
            found = await service.get_artifact_version(**where)
            link = {**HERE, "filename": "link"}
            linked = reference(found.canonical_uri)
            await service.save_artifact(**link, artifact=linked)
            target = await service.load_artifact(**where)
            assert await service.load_artifact(**link) == target
        for foreign in (
            "artifact://apps/app/users/bob/artifacts/user:me.png/versions/0",
            "artifact://apps/app/users/ann/sessions/s2/artifacts/x/versions/0",
            "artifact://apps/other/users/ann/artifacts/user:x/versions/0",
            "artifact://what",
        ):
            with pytest.raises(InputValidationError):
                await service.save_artifact(**FILE, artifact=reference(foreign))

    on_a_file(body, tmp_path)


def test_references_in_a_circle_and_parts_without_content_are_refused(tmp_path):
    async def body(service):
        itself = (
            "artifact://apps/app/users/ann/sessions/s1/artifacts/plan.txt/versions/0"
        )
        await service.save_artifact(**FILE, artifact=reference(itself))
        with pytest.raises(InputValidationError, match="refers to another"):
            await service.load_artifact(**FILE)
        with pytest.raises(InputValidationError, match="must have"):
            await service.save_artifact(**FILE, artifact=types.Part())

    on_a_file(body, tmp_path)


def test_names_may_hold_anything(tmp_path):
    names = ["a/b", "a%2Fb", "user", "session:x", "ä 🙂", "../x", "x/versions/1"]

    async def body(service):
        for session in names:
            for name in names:
                where = {**ME, "session_id": session, "filename": name}
                part = types.Part(text=f"{session} {name}")
                await service.save_artifact(**where, artifact=part)

        for session in names:
            keys = await service.list_artifact_keys(**ME, session_id=session)
            assert keys == sorted(names)
            for name in names:
                where = {**ME, "session_id": session, "filename": name}
                found = await service.load_artifact(**where)
                assert found.text == f"{session} {name}"

    on_a_file(body, tmp_path)
