"""Messages of Strands Agents, as its sessions and snapshots are stored."""

import pytest

from holdfast.operations.transcripts import answers_of, calls_of, open_calls
from inner.messages import role_of, text_of

ASKED = {"role": "user", "content": [{"text": "Is it raining in Lyon?"}]}
CALLED = {
    "role": "assistant",
    "content": [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        {"text": "I look."},
        {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"at": "Lyon"}}},
    ],
    "tracking_id": "8d82c6ce",
    "session_message": {"message_id": 1},
}
ANSWERED = {
    "role": "user",
    "content": [
        {
            "toolResult": {
                "toolUseId": "t1",
                "status": "success",
                "content": [
                    {"text": "wet"},
                    {"json": {"mm": 3, 1: {2}}},
                    {"image": {}},
                ],
            }
        }
    ],
}


def test_texts_calls_and_results_are_found():
    messages = [ASKED, CALLED, ANSWERED]

    [call] = calls_of(CALLED, 1)

    assert [role_of(message) for message in messages] == ["user", "assistant", "tool"]
    assert text_of(ASKED) == "Is it raining in Lyon?"
    assert text_of(CALLED) == "I look."
    assert text_of(ANSWERED).splitlines() == ["wet", "{'mm': 3, 1: {2}}"]
    assert (call.id, call.name, call.arguments) == ("t1", "weather", {"at": "Lyon"})
    assert answers_of(ANSWERED) == ["t1"]
    assert open_calls(messages) == []
    assert open_calls(messages[:2]) == [call]


def test_guarded_and_cited_texts_are_texts_and_media_are_not():
    content = [
        {"guardContent": {"text": {"text": "guarded"}}},
        {"citationsContent": {"citations": [], "content": [{"text": "cited"}]}},
        {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
        {"cachePoint": {"type": "default"}},
    ]

    assert text_of({"role": "assistant", "content": content}) == "guarded\ncited"


@pytest.mark.parametrize(
    "block",
    [{"toolUse": None}, {"toolResult": {"content": 3}}, {"text": None}, {}, 5],
)
def test_broken_blocks_are_read_as_nothing(block):
    message = {"role": "assistant", "content": [block]}

    assert (text_of(message), calls_of(message), answers_of(message)) == ("", [], [])
