"""Effects: calls that are made once, their ledger, the lines they stand on, undoing."""

from holdfast._engine.effects import calls, ledger, undo
from holdfast._engine.effects.calls import (
    HAPPENED,
    INTERRUPTED,
    JournaledCall,
    Permission,
)
from holdfast._engine.effects.line import Line, PlacedCall
from holdfast._engine.effects.lines import line_of
from holdfast._engine.effects.transcript_line import TranscriptLine
from holdfast._engine.effects.undo import Finish, Run

__all__ = [
    "HAPPENED",
    "INTERRUPTED",
    "Finish",
    "JournaledCall",
    "Line",
    "Permission",
    "PlacedCall",
    "Run",
    "TranscriptLine",
    "calls",
    "ledger",
    "line_of",
    "undo",
]
