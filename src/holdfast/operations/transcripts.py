"""Transcripts: messages and items of every provider, their calls, the end of them."""

from holdfast._engine.records import transcript_tail
from holdfast._engine.records.conversations import KIND, missing, thread_of
from holdfast._engine.records.transcript_tail import (
    Ending,
    EndingDraft,
    Newest,
    Untouched,
)
from holdfast._messages.item_calls import (
    PAUSED_RUN,
    SUMMARY,
    Summary,
    item_calls,
    key_of,
    summary_after,
    summary_without,
)
from holdfast._messages.loose import fields_of, parts_of
from holdfast._messages.transcript import (
    TranscriptCall,
    answers_of,
    calls_of,
    decoded,
    open_calls,
)

__all__ = [
    "KIND",
    "PAUSED_RUN",
    "SUMMARY",
    "Ending",
    "EndingDraft",
    "Newest",
    "Summary",
    "TranscriptCall",
    "Untouched",
    "answers_of",
    "calls_of",
    "decoded",
    "fields_of",
    "item_calls",
    "key_of",
    "missing",
    "open_calls",
    "parts_of",
    "summary_after",
    "summary_without",
    "thread_of",
    "transcript_tail",
]
