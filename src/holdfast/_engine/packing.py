"""Optional compression of segments by zstd with a dictionary of the store's own.

Each segment says how it is packed, so a store can be read with either setting;
``compress`` only decides how new segments are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from holdfast._port import Backend
from holdfast._values.records import Segment
from holdfast.errors import Corrupt, Unsupported

PLAIN, ALONE, WITH_DICTIONARY = 0, 1, 2
LEVEL = 6
# A dictionary is trained once, from the first segments: enough of them to be typical,
# and early enough that most of the store is compressed with it.
TRAINING_SEGMENTS = 64
TRAINING_BYTES = 48 << 10
DICTIONARY_SIZE = 16 << 10
SMALLEST = 64


class Packer:
    """Compresses segments that are saved and decompresses those that are read."""

    def __init__(self, backend: Backend, *, compress: bool) -> None:
        self._backend = backend
        self._compress = compress
        self._samples: list[bytes] = []
        self._dictionary: Any = None
        if compress:
            _zstd()

    async def pack(self, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """The segments as they are stored."""
        if not self._compress or not segments:
            return tuple(segments)
        if self._dictionary is None:
            await self._learn(segments)
        return tuple(self._packed(segment) for segment in segments)

    async def packing(self) -> Callable[[Segment], Segment]:
        """A function that packs one segment, with the dictionary if there is one."""
        if self._compress and self._dictionary is None:
            await self._stored_dictionary()
        return self._packed if self._compress else lambda segment: segment

    async def unpack(self, segments: Iterable[Segment]) -> list[bytes]:
        """The bytes of stored segments."""
        return [
            segment.data if segment.packing == PLAIN else await self._unpacked(segment)
            for segment in segments
        ]

    def _packed(self, segment: Segment) -> Segment:
        if len(segment.data) < SMALLEST:
            return segment
        dictionary = self._dictionary  # read once: another thread may set it meanwhile
        digested = dictionary and dictionary.as_digested_dict
        data = _zstd().compress(segment.data, LEVEL, zstd_dict=digested)
        if len(data) >= len(segment.data):
            return segment
        packing = ALONE if dictionary is None else WITH_DICTIONARY
        return Segment(segment.number, data, packing)

    async def _unpacked(self, segment: Segment) -> bytes:
        zstd = _zstd()
        dictionary = None
        if segment.packing == WITH_DICTIONARY:
            dictionary = self._dictionary or await self._stored_dictionary()
            if dictionary is None:
                raise Corrupt("the compression dictionary", "it is missing")
        try:
            digested = dictionary and dictionary.as_digested_dict
            data: bytes = zstd.decompress(segment.data, zstd_dict=digested)
        except zstd.ZstdError as error:
            raise Corrupt(f"segment {segment.number}", str(error)) from None
        return data

    async def _learn(self, segments: Sequence[Segment]) -> None:
        if await self._stored_dictionary() is not None:
            return
        samples = self._samples
        samples += (segment.data for segment in segments)
        size = sum(map(len, samples))
        if len(samples) < TRAINING_SEGMENTS or size < TRAINING_BYTES:
            return
        zstd = _zstd()
        self._samples = []
        trained = zstd.train_dict(tuple(samples), DICTIONARY_SIZE).dict_content
        # The first process to store a dictionary decides for all, and for good.
        decided = await self._backend.setting(_SETTING, trained)
        assert decided is not None
        self._dictionary = zstd.ZstdDict(decided)

    async def _stored_dictionary(self) -> Any:
        stored = await self._backend.setting(_SETTING)
        if stored is not None:
            self._dictionary = _zstd().ZstdDict(stored)
        return self._dictionary


_SETTING = f"zstd dictionary {WITH_DICTIONARY}"


@cache  # looking for a module that is missing takes longer than compressing
def _zstd() -> Any:
    for module in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(module)
        except ImportError:
            continue
    raise Unsupported("compression needs zstd: pip install 'holdfast[zstd]'")
