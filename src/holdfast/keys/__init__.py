"""Encryption: everything a store keeps is encrypted with keys that the caller has."""

from holdfast._values.caller_key import KeyWrapper, OwnerSecrets
from holdfast.keys._caller_key import write_key_file
from holdfast.keys._owner_key_file import OwnerKeyFile

__all__ = ["KeyWrapper", "OwnerKeyFile", "OwnerSecrets", "write_key_file"]
