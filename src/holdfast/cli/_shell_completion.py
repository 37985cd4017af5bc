"""Completion in shells: click's, with an own script for bash.

Bash splits words at ``@`` and ``:``, so that `chat@label:x` would be three words.
"""

from __future__ import annotations

import os
from typing import ClassVar

import click
from click.shell_completion import (
    BashComplete,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    shell_complete,
    split_arg_string,
)

from holdfast.cli._invocation import COMPLETION, PROGRAM, Invocation

SHELLS = ("bash", "zsh", "fish")

_BASH = r"""
%(complete_func)s() {
    local IFS=$'\n' line="${COMP_LINE:0:$COMP_POINT}" answer known="" breaks
    # What of the last word bash does not replace: up to the last sign that ends words.
    # An @ itself is replaced: it begins a word, as in the name of a host.
    breaks="${COMP_WORDBREAKS//[^@:=]/}"
    if [[ -n "$breaks" && "${line##* }" == *[$breaks]* ]]; then
        known="${line##* }"
        known="${known%%"${known##*[$breaks]}"}"
        known="${known%%@}"
    fi
    COMPREPLY=()
    for answer in $(COMP_WORDS="$line" %(complete_var)s=bash_complete $1); do
        case "$answer" in
            dir,*) compopt -o dirnames ;;
            file,*) compopt -o default ;;
            *) answer="${answer#*,}"; COMPREPLY+=("${answer#"$known"}") ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    """Reads the whole line up to the cursor."""

    source_template: ClassVar[str] = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)[1:]
        unfinished = words.pop() if words and not line.endswith(" ") else ""
        return words, unfinished


add_completion_class(Bash)


def script(root: click.Command, shell: str) -> str:
    """The script that makes a shell complete."""
    kind = get_completion_class(shell)
    assert kind is not None  # one of SHELLS
    made: ShellComplete = kind(root, {}, PROGRAM, COMPLETION)
    return made.source()


def complete(root: click.Command, cli: Invocation, instruction: str) -> int:
    """Print the completions that a shell asked for."""
    return shell_complete(root, {"obj": cli}, PROGRAM, COMPLETION, instruction)
