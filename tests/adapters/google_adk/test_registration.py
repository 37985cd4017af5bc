"""The framework's command line finds the services by their scheme."""

import asyncio
import sys

import httpx
import pytest
from google.adk.cli import service_registry
from google.adk.cli.fast_api import get_fast_api_app

import holdfast
from holdfast import Unstorable
from holdfast.adapters.google_adk import (
    HoldfastArtifactService,
    HoldfastMemoryService,
    HoldfastSessionService,
    register,
    session_thread,
)

pytestmark = pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")

AGENT = """
from adapters.google_adk.agents import CallsOnce, bump
from google.adk.agents import Agent

root_agent = Agent(name="counter", model=CallsOnce(), tools=[bump])
"""
PYTHON = """
from holdfast.adapters.google_adk import register

register(compress=True)
"""
YAML = """
services:
  - scheme: holdfast
    type: session
    class: holdfast.adapters.google_adk.session_service
  - scheme: holdfast
    type: artifact
    class: holdfast.adapters.google_adk.artifact_service
  - scheme: holdfast
    type: memory
    class: holdfast.adapters.google_adk.memory_service
"""
FILES = {"services.py": PYTHON, "services.yaml": YAML}


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """A registry that nothing is in yet but what the framework ships."""
    monkeypatch.setattr(service_registry, "_service_registry_instance", None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield service_registry.get_service_registry()
    sys.modules.pop("services", None)


async def used(app):
    """Create a session, run a turn and look at it, over HTTP."""
    sessions = "/apps/counter/users/ann/sessions"
    wanted = {"sessionId": "s1", "state": {"n": 5}}
    where = {"appName": "counter", "userId": "ann", "sessionId": "s1"}
    message = {"role": "user", "parts": [{"text": "go"}]}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        assert (await client.post(sessions, json=wanted)).status_code == 200
        ran = await client.post("/run", json={**where, "newMessage": message})
        assert ran.status_code == 200, ran.text
        assert (await client.get(f"{sessions}/s1")).json()["state"]["n"] == 6
        assert (await client.post(sessions, json=wanted)).status_code == 409


@pytest.mark.parametrize("file", FILES)
def test_the_server_of_the_framework_keeps_its_sessions_in_a_store(file, tmp_path):
    agents = tmp_path / "agents"
    (agents / "counter").mkdir(parents=True)
    (agents / "counter" / "agent.py").write_text(AGENT)
    (agents / "counter" / "__init__.py").write_text("")
    (agents / file).write_text(FILES[file])
    address = f"holdfast://{tmp_path}/state.db"
    app = get_fast_api_app(
        agents_dir=str(agents),
        session_service_uri=address,
        artifact_service_uri=address,
        memory_service_uri=address,
        web=False,
    )
    asyncio.run(used(app))

    with holdfast.open(tmp_path / "state.db") as store:
        thread = store.thread(session_thread("counter", "ann", "s1"))
        assert thread.values("state:n") == {"state:n": 6}


def test_all_three_services_are_registered_with_their_options(
    registry, server, schema, tmp_path
):
    register(schema=schema)
    address = "holdfast+" + server
    made = [
        registry.create_session_service(address, agents_dir=str(tmp_path)),
        registry.create_artifact_service(address),
        registry.create_memory_service(address),
    ]
    kinds = [HoldfastSessionService, HoldfastArtifactService, HoldfastMemoryService]

    assert [type(service) for service in made] == kinds
    for service in made:
        service._used._owned.close()


@pytest.mark.parametrize("uri", ["holdfast://", "sqlite:///x.db", "agents.db"])
def test_an_address_without_a_store_is_refused(uri, registry):
    register()
    factory = registry._session_factories["holdfast"]

    with pytest.raises(Unstorable, match="holdfast:// and the address"):
        factory(uri)
