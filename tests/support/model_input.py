"""Messages as every provider gets them."""

from holdfast.messages import to_anthropic, to_openai, to_openai_responses


def everywhere(*messages):
    """The messages for Chat, Responses and Anthropic."""
    return (
        to_openai(messages),
        to_openai_responses(messages),
        to_anthropic(messages)["messages"],
    )
