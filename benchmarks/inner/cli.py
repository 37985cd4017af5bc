"""The inner names of the command line that benchmarks use."""

from holdfast._api.plugins import sqlite_build
from holdfast.cli._diagnostics import VOLATILE, file_system
from holdfast.cli.terminal.tables import Cell, Line, Span, aligned
