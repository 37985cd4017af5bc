"""Conversations that do not only grow."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.contest.workload import Message, Turn, Writer, growing

SYSTEM_SIZE = 600


def changing_prompt(turns: int) -> Iterator[Turn]:
    """As `growing`, behind a system prompt that is never the same twice."""
    writer = Writer(2)
    rules = writer.text(SYSTEM_SIZE - 150)
    for number, turn in enumerate(growing(turns)):
        content = f"It is minute {number}. {rules} Remember: {writer.text(120)}"
        system = {"role": "system", "content": content}
        yield Turn([system, *turn.messages], turn.added)


def sliding_window(turns: int, size: int = 100) -> Iterator[Turn]:
    """As `growing`, but only the last messages are kept in the state."""
    for turn in growing(turns):
        yield Turn(turn.messages[-size:], turn.added)


def edited(turns: int, every: int = 10) -> Iterator[Turn]:
    """As `growing`, with an older message rewritten every tenth turn."""
    writer = Writer(3)
    messages: list[Message] = []
    for number, turn in enumerate(growing(turns), 1):
        messages = messages + turn.added
        if not number % every:
            index = writer.below(len(messages) - len(turn.added))
            text = writer.text(len(messages[index]["content"]))
            messages[index] = {**messages[index], "content": text}
        yield Turn(messages, turn.added)
