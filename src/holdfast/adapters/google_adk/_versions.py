"""The versions of an artifact, as its thread stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from google.adk.artifacts import artifact_util
from google.adk.artifacts.base_artifact_service import ArtifactVersion
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types
from pydantic_core import to_json

from holdfast.adapters.google_adk._names import ArtifactKey

VERSIONS = "versions"
# The framework saves this as a version when a rewind removes an artifact.
_REMOVED = types.Part(
    inline_data=types.Blob(mime_type="application/octet-stream", data=b"")
)


class Version(msgspec.Struct, frozen=True):
    """A version without its bytes or text, which are the value named ``content``."""

    number: int
    part: dict[str, Any]
    content: str | None
    metadata: dict[str, Any]
    time: float


# Two threads that were the first to use it at the same moment would crash in msgspec.
msgspec.json.Decoder(Version)


class Content(msgspec.Struct, frozen=True):
    """The bytes or the text of a part, and the part without them."""

    part: dict[str, Any]
    value: bytes | str | None

    @classmethod
    def of(cls, part: types.Part) -> Content:
        """A part as content and rest; `InputValidationError` if it has no content."""
        if part.inline_data is not None:
            shell = _fields(part, {"inline_data": {"data"}})
            return cls(shell, part.inline_data.data or b"")
        if part.text is not None:
            return cls(_fields(part, {"text": True}), part.text)
        if part.file_data is None:
            text = "an artifact must have bytes, a text or the address of a file"
            raise InputValidationError(text)
        return cls(_fields(part, {}), None)

    @property
    def name(self) -> str | None:
        """The name of the value; equal contents get one name."""
        if self.value is None:
            return None
        is_text = isinstance(self.value, str)
        data = self.value.encode() if isinstance(self.value, str) else self.value
        return f"{'text' if is_text else 'bytes'}:{sha256(data).hexdigest()}"

    @property
    def values(self) -> dict[str, bytes | str]:
        """The value by its name, if there is one."""
        name = self.name
        return {} if name is None or self.value is None else {name: self.value}


def _fields(part: types.Part, but: dict[str, Any]) -> dict[str, Any]:
    return part.model_dump(mode="json", exclude_none=True, exclude=but)


def versions_in(values: Mapping[str, Any]) -> list[Version]:
    """The versions among the values of an artifact, in order."""
    return msgspec.convert(values.get(VERSIONS, []), list[Version])


def chosen(versions: Sequence[Version], number: int | None) -> Version | None:
    """The version with a number, or the last one."""
    if number is None:
        return versions[-1] if versions else None
    return next((one for one in versions if one.number == number), None)


def part_of(version: Version, values: Mapping[str, Any]) -> types.Part | None:
    """The part that was saved, ``None`` if the version marks a removal."""
    # From JSON: only then the model decodes bytes from text.
    part = types.Part.model_validate_json(to_json(version.part))
    content = values[version.content] if version.content else None
    if isinstance(content, str):
        part.text = content
    elif content is not None:
        part.inline_data = part.inline_data or types.Blob()
        part.inline_data.data = content
    return None if part == _REMOVED else part


def described(key: ArtifactKey, version: Version) -> ArtifactVersion:
    """A version as the framework lists it."""
    return ArtifactVersion(
        version=version.number,
        canonical_uri=artifact_util.get_artifact_uri(
            key.app, key.user, key.file, version.number, key.session
        ),
        custom_metadata=version.metadata,
        create_time=version.time,
        mime_type=_mime_type(version),
    )


def _mime_type(version: Version) -> str | None:
    part = types.Part.model_validate_json(to_json(version.part))
    if part.inline_data is not None:
        return part.inline_data.mime_type
    if part.file_data is not None:
        return part.file_data.mime_type
    return "text/plain"


def target_of(key: ArtifactKey, part: types.Part) -> tuple[ArtifactKey, int] | None:
    """The version that a part refers to, ``None`` if it is no reference.

    `InputValidationError` if the version belongs to another app, user or session.
    """
    file = part.file_data
    if file is None or not artifact_util.is_artifact_ref(part):
        return None
    found = artifact_util.parse_artifact_uri(file.file_uri or "")
    if found is None:
        raise InputValidationError(f"{file.file_uri} is no address of an artifact")
    target = ArtifactKey.of(
        found.app_name, found.user_id, found.session_id, found.filename
    )
    if target[:2] != key[:2] or target.session not in (None, key.session):
        text = f"{file.file_uri} is in another app, user or session; copy it instead"
        raise InputValidationError(text)
    return target, found.version
