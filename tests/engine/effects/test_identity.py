"""Which calls mean the same effect, and which are two decisions."""

from base64 import b64encode, urlsafe_b64encode
from hashlib import sha256
from uuid import UUID

import pytest

import holdfast
from holdfast import Unstorable
from holdfast.testing import raises
from inner.messages import UNDECLARED, declaration_of


def identity(value, name="to"):
    return UNDECLARED.identity("pay", {name: value})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("4111111111111111", "5500000000000004"),
        ("123456789012345678", "123456789012345679"),
        ("src/Components/Button2/index", "src/Components/Button3/index"),
        ("feature/JIRA-1234-add-login", "feature/JIRA-1235-add-logout"),
        ("Report_2024_Final_Version", "Report_2025_Final_Version"),
        ("releases/Version2/buildArtifacts", "releases/Version3/buildArtifacts"),
    ],
)
def test_numbers_of_accounts_paths_and_names_are_two_decisions(one, other):
    assert identity(one) != identity(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "019a86b5-2f40-7008-8000-0004f1bbcd88",
            "019a86b5-2f40-7008-8000-0004f1bbcd99",
        ),
        ("9f86d081884c7d659a2feaa0c55ad015", "60303ae22b998861bce3b28f33eec1be"),
        ("0x9f86d081884c7d65", "0x60303ae22b998861"),
        ("V1StGXR8Z5jdHi6B_myT1q", "Uakgb_J5m9g0JDMbcJqLJQ"),
        ("pi_3MtwBwLkdIwHu7ix28a3tqPa", "pi_3NtwCwMkeJwIu8jy39b4urQb"),
        ("2026-11-20T10:00:01Z", "2026-11-20T10:00:02Z"),
    ],
)
def test_what_looks_invented_is_the_same_effect(one, other):
    assert identity(one) == identity(other)


def test_random_tokens_look_invented():
    for n in range(200):
        token = sha256(str(n).encode()).digest()[:24]
        for text in (b64encode(token).decode(), urlsafe_b64encode(token).decode()):
            has_all = any(map(str.isdigit, text)) and text != text.lower()
            assert not has_all or identity(text) == identity(str(UUID(int=n)))


@pytest.mark.parametrize("arguments", [None, [], "broken {", 7, {"other": 1}])
def test_arguments_without_the_declared_names_have_an_identity(arguments):
    @holdfast.once(key=("to",))
    def pay(to):
        return to

    tool = declaration_of(pay)

    assert tool.identity("pay", arguments) == tool.identity("pay", {})
    assert tool.identity("pay", arguments) != tool.identity("pay", {"to": "bob"})


def asking(number):
    function = {"name": "pay", "arguments": f'{{"to": {number}}}'}
    return {"role": "assistant", "tool_calls": [{"id": "a", "function": function}]}


@pytest.mark.parametrize("number", [2**64, -(2**64) - 1, 10**400, 10**18])
def test_numbers_are_as_exact_as_the_model_wrote_them(memory, number):
    paid = []

    def pay(to):
        paid.append(to)

    run = memory.conversations.recorder("c", tools=[pay])
    run.add({"role": "user", "content": "Pay."})
    run.save(label="asked")
    for given in (number, number + 1, number):
        run.llm_response(asking(given))
        run.call("a")
        run.resume(at="label:asked", discard=True, tell=False)

    assert paid == [number, number + 1]


@pytest.mark.parametrize(
    "text", ['{"to": NaN, "n": 1234567890123456789012}', "1" * 9999]
)
def test_what_is_no_number_of_json_reaches_no_tool(memory, text):
    run = memory.conversations.recorder("c", tools={"pay": print})
    function = {"name": "pay", "arguments": text}
    call = {"id": "a", "function": function}
    run.llm_response({"role": "assistant", "tool_calls": [call]})

    with raises(Unstorable):
        run.call("a")
