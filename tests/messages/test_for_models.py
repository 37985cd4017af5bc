"""A transcript goes to a model in the shape its provider wants, in one call."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast.messages import (
    Message,
    to_anthropic,
    to_openai,
    to_openai_responses,
    to_plain,
)
from support.providers import check
from support.rich_transcripts import rich_transcripts, said, spoiled_transcripts
from support.transcripts import odd_messages, problems, transcripts

PROVIDERS = ("openai", "responses", "anthropic")
NATIVE = {"openai": "chat", "responses": "responses", "anthropic": "anthropic"}


def request(provider: str, messages: Any) -> Any:
    """What is passed to a provider."""
    convert = {
        "openai": to_openai,
        "responses": to_openai_responses,
        "anthropic": to_anthropic,
    }
    return convert[provider](messages)


def messages_of(made: Any) -> list[Any]:
    """A request as messages again."""
    if not isinstance(made, dict):
        return made
    system = [{"role": "system", "content": made["system"]}] if "system" in made else []
    return [*system, *made["messages"]]


# --- the check itself ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "wrong"),
    [
        ("openai", [{"role": "user", "content": [{"type": "text"}]}]),
        ("openai", [{"role": "assistant", "content": None, "tool_calls": [{"id": 5}]}]),
        ("openai", [{"role": "user", "content": "Hi.", "at": 5}]),
        ("responses", [{"type": "function_call_output", "output": [{"text": "a"}]}]),
        ("responses", [{"type": "reasoning", "id": "rs_1"}]),
        ("anthropic", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
        ("anthropic", {"messages": [{"role": "tool", "content": "Hi."}]}),
        ("anthropic", {"messages": [], "system": [{"type": "image"}]}),
    ],
)
def test_the_types_of_the_provider_refuse_what_is_wrong(provider, wrong):
    with pytest.raises(ValidationError):
        check(provider, wrong)


# --- every transcript -----------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
@given(messages=rich_transcripts() | transcripts())
def test_a_request_is_of_the_types_of_the_provider(provider, messages):
    made = request(provider, messages)

    check(provider, made)
    assert problems(messages_of(made)) == []


@pytest.mark.parametrize("provider", PROVIDERS)
@given(messages=rich_transcripts())
def test_a_request_says_what_the_transcript_says(provider, messages):
    made = request(provider, messages)

    assert said(messages_of(made)) == said(messages)


@pytest.mark.parametrize("provider", PROVIDERS)
@given(messages=rich_transcripts(), by=st.sampled_from(PROVIDERS))
def test_a_transcript_can_go_from_provider_to_provider(provider, messages, by):
    there = messages_of(request(by, messages))

    assert said(messages_of(request(provider, there))) == said(messages)


@pytest.mark.parametrize("provider", PROVIDERS)
@given(data=st.data())
def test_what_a_provider_wrote_comes_back_equal(provider, data):
    messages = data.draw(rich_transcripts((NATIVE[provider],)))

    assert messages_of(request(provider, messages)) == messages


@pytest.mark.parametrize("provider", PROVIDERS)
@given(messages=rich_transcripts())
def test_a_request_comes_back_equal(provider, messages):
    made = request(provider, messages)

    assert request(provider, messages_of(made)) == made


@given(messages=rich_transcripts())
def test_the_plain_form_says_the_same(messages):
    plain = to_plain(messages)

    assert all(isinstance(message, Message) for message in plain)
    assert said(plain) == said(messages)
    assert to_plain(plain) == plain


ODD = st.lists(odd_messages.filter(lambda m: type(m) in (str, dict)))


@pytest.mark.parametrize("provider", PROVIDERS)
@given(messages=ODD | spoiled_transcripts())
def test_whatever_the_store_holds_becomes_a_valid_request(provider, messages):
    check(provider, request(provider, messages), closed=False)
    to_plain(messages)


@pytest.mark.parametrize("provider", PROVIDERS)
@given(messages=rich_transcripts())
def test_a_request_shares_nothing_with_the_transcript(provider, messages):
    before = copy.deepcopy(messages)

    for message in messages_of(request(provider, messages)):
        spoil(message)

    assert messages == before


def spoil(value: Any) -> None:
    """Change everything that can be changed."""
    for inner in list(value.values() if isinstance(value, dict) else value):
        if isinstance(inner, dict | list):
            spoil(inner)
    value.clear()
