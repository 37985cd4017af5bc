"""Messages and artifacts of A2A tasks, as the views of a store read them."""

import pytest

from inner.messages import role_of, text_of

SAID = {
    "messageId": "m1",
    "contextId": "c",
    "taskId": "t",
    "role": "ROLE_USER",
    "parts": [{"text": "plan a trip"}, {"url": "https://example.org/map"}],
}
ANSWERED = {"messageId": "m2", "role": "ROLE_AGENT", "parts": [{"data": {"km": 12.0}}]}
ARTIFACT = {
    "artifactId": "a1",
    "name": "plan",
    "parts": [{"text": "by train"}, {"raw": "AAEC", "filename": "plan.pdf"}],
}


@pytest.mark.parametrize(
    ("message", "role", "text"),
    [
        (SAID, "user", "plan a trip\nhttps://example.org/map"),
        (ANSWERED, "assistant", '{"km":12.0}'),
        (ARTIFACT, "assistant", "by train\nplan.pdf"),
        ({"role": "ROLE_AGENT", "parts": []}, "assistant", ""),
        ({"role": "ROLE_AGENT", "parts": [{"data": {1}}, 7, {}]}, "assistant", ""),
    ],
)
def test_what_a_task_holds_is_read_as_messages(message, role, text):
    assert (role_of(message), text_of(message)) == (role, text)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "parts": [{"text": "of another framework"}]},
        {"parts": [{"text": "of no role"}]},
        {"role": "ROLE_USER", "content": "no parts"},
    ],
)
def test_messages_of_others_are_left_as_they_are(message):
    assert role_of(message) == message.get("role", "")
