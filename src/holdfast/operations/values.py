"""Values: names and ids that are checked, values as bytes, lists from their end."""

from holdfast._values import codec
from holdfast._values.clock import uuid7
from holdfast._values.list_tail import Tail
from holdfast._values.manifest import has_value
from holdfast._values.records import (
    EPOCH,
    LONGEST_NAME,
    checked_name,
    encode_metadata,
    without_traceparent,
)
from holdfast._values.reference import HEAD, checked_id
from holdfast._values.rope import Blocks

__all__ = [
    "EPOCH",
    "HEAD",
    "LONGEST_NAME",
    "Blocks",
    "Tail",
    "checked_id",
    "checked_name",
    "codec",
    "encode_metadata",
    "has_value",
    "uuid7",
    "without_traceparent",
]
