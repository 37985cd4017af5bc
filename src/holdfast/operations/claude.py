"""Claude: the form in which transcripts of its sessions are stored.

The importer makes this form too, where the Claude Agent SDK is not installed.
"""

from holdfast._messages.claude_transcript import (
    LENGTH,
    MESSAGES,
    SESSION,
    SUBAGENT,
    Transcript,
    apart,
    last_part,
    sessions_prefix,
    together,
)

__all__ = [
    "LENGTH",
    "MESSAGES",
    "SESSION",
    "SUBAGENT",
    "Transcript",
    "apart",
    "last_part",
    "sessions_prefix",
    "together",
]
