"""Inner names of the command line."""

from holdfast.cli import _completion as completion
from holdfast.cli import _status as exit_status
from holdfast.cli import commands
from holdfast.cli._diagnostics import file_system
from holdfast.cli._group import ALIASES, NAMES, ROOT, load, summary
from holdfast.cli._log_text import drawn
from holdfast.cli._reference import VARIABLES, reference, rewritten
from holdfast.cli._resolve import locate, locate_fork, locate_range
from holdfast.cli._run import run as run_command_line
from holdfast.cli._status import MEANINGS, status_of
from holdfast.cli._text import counted, size
from holdfast.cli.commands.bisect import first_bad
from holdfast.cli.commands.mcp import command as mcp_command
from holdfast.cli.terminal import progress
from holdfast.cli.terminal.escape import cut, escaped, harmless, one_line, width
from holdfast.cli.terminal.output import ASCII, UNICODE
from holdfast.cli.terminal.tables import aligned
