"""Encryption: everything a store keeps is encrypted with keys that the caller has."""

from holdfast._values.caller_key import KeyWrapper
from holdfast.keys._caller_key import write_key_file

__all__ = ["KeyWrapper", "write_key_file"]
