"""Agents of Strands over the repository: each message is a checkpoint."""

from enum import StrEnum

import pytest
from strands.agent import SlidingWindowConversationManager
from strands.session import RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

import holdfast
from adapters.strands.scripted import agent, said
from holdfast.adapters.strands import (
    HoldfastSessionManager,
    HoldfastSessionRepository,
)


def manager(store, session="s1"):
    return HoldfastSessionManager(session, store)


@pytest.fixture
def repository(filed):
    """A repository with a session and an agent."""
    repository = HoldfastSessionRepository(filed)
    repository.create_session(Session("s1", SessionType.AGENT))
    repository.create_agent("s1", SessionAgent("a1", {}, {}))
    return repository


def add_messages(repository, *texts):
    for number, text in enumerate(texts):
        message = {"role": "user", "content": [{"text": text}]}
        new = SessionMessage.from_message(message, number)
        repository.create_message("s1", "a1", new)


# --- agents ---------------------------------------------------------------------------


def test_an_agent_goes_on_where_another_ended(store):
    first = agent(manager(store), ("add", {"a": 1, "b": 2}), "three")
    first.state.set("sums", 1)
    first("What is 1 + 2?")

    second = agent(manager(store), "You are welcome")
    second("Thanks")

    turns = ["What is 1 + 2?", "add()", "-> 3", "three", "Thanks"]
    assert said(second.model.asked[0]) == turns
    assert second.messages[:4] == first.messages
    assert second.state.get() == {"sums": 1}


def test_of_two_agents_on_a_session_the_slower_is_refused_and_changes_nothing(store):
    agent(manager(store), "hello")("hi")
    faster, slower = (agent(manager(store), "ok", "ok") for _ in range(2))
    faster.state.set("order", 17)
    slower.state.set("order", 99)
    faster("first")

    for _ in range(2):  # it stays refused
        with pytest.raises(SessionException, match="make the agent anew"):
            slower("second")

    third = agent(manager(store))
    assert said(third.messages) == ["hi", "hello", "first", "ok"]
    assert third.state.get() == {"order": 17}


def test_two_agents_that_begin_one_session_are_not_mixed(filed):
    faster, slower = manager(filed), manager(filed, "s1")
    agent(faster, "hello")("hi")

    slower._is_new_session = True  # it was, when the slower one looked
    with pytest.raises(SessionException, match="another agent"):
        agent(slower)


def test_a_step_is_a_message_or_a_change_of_state(filed):
    first = agent(manager(filed), "hello", "again")
    first("hi")
    thread = HoldfastSessionRepository(filed).thread("s1")
    begun = thread.step

    first("hi again")

    assert thread.step - begun == 2  # nothing for a state that is the same
    assert thread.about.agent == "default"


def test_agents_of_one_session_are_apart(filed):
    session = manager(filed)
    one, other = (agent(session, name, agent_id=name) for name in ("one", "other%2F1"))
    one("to one")
    other("to the other")

    session = manager(filed)

    assert said(agent(session, agent_id="one").messages) == ["to one", "one"]
    assert said(agent(session, agent_id="other%2F1").messages)[0] == "to the other"


def test_only_the_window_is_loaded_again(filed):
    window = {"conversation_manager": SlidingWindowConversationManager(window_size=2)}
    first = agent(manager(filed), "1", "2", "3", **window)
    for text in ("a", "b", "c"):
        first(text)

    window = {"conversation_manager": SlidingWindowConversationManager(window_size=2)}
    second = agent(manager(filed), "4", **window)
    assert said(second.messages) == said(first.messages) == ["c", "3"]
    second("d")

    thread = HoldfastSessionRepository(filed).thread("s1")
    assert said(thread.load()["messages"]) == ["a", "1", "b", "2", "c", "3", "d", "4"]


def test_values_that_strands_takes_come_back_as_from_its_own_managers(filed):
    class Status(StrEnum):
        OPEN = "open"

    picture = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    first = agent(manager(filed), "a cat")
    first.state.set("status", Status.OPEN)
    first([{"text": "what is it?"}, picture])

    second = agent(manager(filed))
    assert second.messages[0]["content"][1] == picture
    assert second.state.get() == {"status": "open"}


# --- history --------------------------------------------------------------------------


def test_a_fork_is_a_session_that_strands_accepts(store):
    first = agent(manager(store), "hello", "bye")
    first("hi")
    repository = HoldfastSessionRepository(store)
    thread = repository.thread("s1")
    at = thread.head
    first("see you")

    thread.fork(repository.thread("s2").id, at=at)
    forked = agent(manager(store, "s2"), "still here")
    forked("are you there?")

    assert said(forked.messages) == ["hi", "hello", "are you there?", "still here"]
    assert said(agent(manager(store)).messages) == ["hi", "hello", "see you", "bye"]


def test_after_a_rewind_the_session_goes_on_from_there(store):
    first = agent(manager(store), "hello", "wrong", "late")
    first("hi")
    thread = HoldfastSessionRepository(store).thread("s1")
    at = thread.head
    first("do it")
    thread.rewind(at)

    with pytest.raises(SessionException):
        first("go on")  # it still has what was taken back

    second = agent(manager(store), "right")
    second("do it")
    assert said(second.messages) == ["hi", "hello", "do it", "right"]


def test_a_redaction_replaces_the_message_and_keeps_its_record(repository):
    add_messages(repository, "secret", "more")
    message = repository.read_message("s1", "a1", 0)
    created = message.created_at
    message.redact_message = {"role": "user", "content": [{"text": "[redacted]"}]}
    message.created_at = "later"

    repository.update_message("s1", "a1", message)

    found = repository.read_message("s1", "a1", 0)
    assert found == message
    assert (found.created_at, found.to_message()) == (created, message.redact_message)
    assert said(repository.thread("s1", "a1").load()["messages"])[0] == "[redacted]"


# --- the methods of a repository ------------------------------------------------------


def test_messages_are_listed_from_an_offset_to_a_limit(repository):
    add_messages(repository, *"abcde")

    def listed(**page):
        found = repository.list_messages("s1", "a1", **page)
        return "".join(said([one.to_message() for one in found]))

    assert listed() == "abcde"
    assert listed(offset=3) == "de"
    assert listed(limit=2, offset=1) == "bc"
    assert listed(limit=0) == listed(offset=9) == ""
    assert repository.read_message("s1", "a1", 5) is None


def test_a_message_must_be_the_next_one(repository):
    add_messages(repository, "a")
    early = SessionMessage.from_message({"role": "user", "content": []}, 0)

    with pytest.raises(SessionException, match="the next one is 1"):
        repository.create_message("s1", "a1", early)


def test_what_is_there_cannot_be_created_and_what_is_not_cannot_be_changed(repository):
    missing = SessionMessage.from_message({"role": "user", "content": []}, 0)

    with pytest.raises(SessionException, match="exists already"):
        repository.create_session(Session("s1", SessionType.AGENT))
    with pytest.raises(SessionException):
        repository.create_agent("s1", SessionAgent("a1", {}, {}))
    with pytest.raises(SessionException, match="does not exist"):
        repository.update_agent("s1", SessionAgent("a2", {}, {}))
    with pytest.raises(SessionException, match="does not exist"):
        repository.update_message("s1", "a1", missing)
    with pytest.raises(SessionException, match="does not exist"):
        repository.list_messages("s1", "a2")
    assert repository.read_session("s2") is None
    assert repository.read_agent("s1", "a2") is None


def test_a_session_is_deleted_with_its_agents(repository):
    repository.create_session(Session("s", SessionType.AGENT))

    repository.delete_session("s1")

    assert repository.read_session("s1") is None
    assert repository.read_agent("s1", "a1") is None
    assert repository.read_session("s") is not None
    with pytest.raises(SessionException, match="does not exist"):
        repository.delete_session("s1")


def test_ids_may_be_any_text_and_do_not_meet(repository):
    ids = ["", "/", "a/b", "a%2Fb", "agents", "é ", "s1/agents", "..", "\n"]

    for number, id_ in enumerate(ids):
        repository.create_session(Session(id_, SessionType.AGENT))
        for other in ids:
            state = {"at": [number, other]}
            repository.create_agent(id_, SessionAgent(other, state, {}))

    for number, id_ in enumerate(ids):
        assert repository.read_session(id_).session_id == id_
        found = [repository.read_agent(id_, other).state for other in ids]
        assert found == [{"at": [number, other]} for other in ids]


def test_what_cannot_be_stored_is_refused_with_its_place(repository):
    with pytest.raises(SessionException, match=r"state\.when"):
        repository.update_agent("s1", SessionAgent("a1", {"when": object()}, {}))
    with pytest.raises(SessionException, match="bytes long"):
        repository.read_session("s" * 600)


# --- stores ---------------------------------------------------------------------------


def test_an_address_is_opened_and_closed(tmp_path):
    session = HoldfastSessionManager("s1", tmp_path / "own.db", compress=True)
    agent(session, "hello")("hi")
    session.close()

    with pytest.raises(SessionException, match="closed"):
        session.session_repository.read_session("s1")
    with holdfast.open(tmp_path / "own.db") as store:
        assert said(agent(manager(store)).messages) == ["hi", "hello"]


def test_the_repository_works_with_strands_own_manager(filed):
    repository = HoldfastSessionRepository(filed)
    agent(RepositorySessionManager("s1", repository), "hello")("hi")

    assert said(agent(manager(filed)).messages) == ["hi", "hello"]
