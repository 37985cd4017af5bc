"""The storage technologies, one folder each, and what it takes to write another one.

Authors of backends and layers import the port from here: the verbs (`Backend`,
`BlockingBackend`), `Layer`, a backend over a backend, and the values that the verbs
take and give. docs/writing-a-backend.md explains them.
"""

from __future__ import annotations

from holdfast import _port
from holdfast._port import *  # noqa: F403 - all of the port is offered here
from holdfast._port.layer import Layer
from holdfast._values.records import (
    UNSET,
    Change,
    Checkpoint,
    Entry,
    Move,
    Origin,
    Page,
    Run,
    Segment,
    ThreadRecord,
    Unset,
)

__all__ = [
    "UNSET",
    "Change",
    "Checkpoint",
    "Entry",
    "Layer",
    "Move",
    "Origin",
    "Page",
    "Run",
    "Segment",
    "ThreadRecord",
    "Unset",
]
__all__ += _port.__all__
