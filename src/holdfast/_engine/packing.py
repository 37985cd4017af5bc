"""Optional compression of segments by zstd with a dictionary of the store's own.

Each segment says how it is packed, so a store can be read with either setting;
``compress`` only decides how new segments are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        self._digested: Any = None
        if compress:
            _zstd()

    async def pack(self, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """The segments as they are stored."""
        if not self._compress or not segments:
            return tuple(segments)
        if self._dictionary is None:
            await self._learn(segments)
        return tuple(map(self._packing(), segments))

    async def packing(self) -> Callable[[Segment], Segment]:
        """A function that packs one segment, with the dictionary if there is one.

        It must not be called by two threads at the same time.
        """
        if not self._compress:
            return lambda segment: segment
        if self._dictionary is None:
            await self._stored_dictionary()
        return self._packing()

    async def unpack(self, segments: Sequence[Segment]) -> list[bytes]:
        """The bytes of stored segments."""
        packings = {segment.packing for segment in segments}
        if packings <= {PLAIN}:
            return [segment.data for segment in segments]
        if WITH_DICTIONARY in packings and self._dictionary is None:
            await self._stored_dictionary()
            if self._dictionary is None:
                raise Corrupt("the compression dictionary", "it is missing")
        return _unpacked(segments, packings, self._dictionary)

    def _packing(self) -> Callable[[Segment], Segment]:
        digested = self._digested_dictionary()
        packing = ALONE if digested is None else WITH_DICTIONARY
        compressor = _zstd().ZstdCompressor(level=LEVEL, dict_data=digested)

        def packed(segment: Segment) -> Segment:
            if len(segment.data) < SMALLEST:
                return segment
            data: bytes = compressor.compress(segment.data)
            smaller = len(data) < len(segment.data)
            return Segment(segment.number, data, packing) if smaller else segment

        return packed

    async def _learn(self, segments: Sequence[Segment]) -> None:
        if await self._stored_dictionary() is not None:
            return
        samples = self._samples
        samples += (segment.data for segment in segments)
        size = sum(map(len, samples))
        if len(samples) < TRAINING_SEGMENTS or size < TRAINING_BYTES:
            return
        self._samples = []
        trained = _zstd().train_dictionary(DICTIONARY_SIZE, [*samples]).as_bytes()
        # The first process to store a dictionary decides for all, and for good.
        decided = await self._backend.setting(_SETTING, trained)
        assert decided is not None
        self._dictionary = _zstd().ZstdCompressionDict(decided)

    async def _stored_dictionary(self) -> Any:
        stored = await self._backend.setting(_SETTING)
        if stored is not None:
            self._dictionary = _zstd().ZstdCompressionDict(stored)
        return self._dictionary

    def _digested_dictionary(self) -> Any:
        """The dictionary for compressing; to digest it takes as long as a small save.

        A copy, because other threads may be reading with the dictionary.
        """
        if self._digested is None and self._dictionary is not None:
            digested = _zstd().ZstdCompressionDict(self._dictionary.as_bytes())
            digested.precompute_compress(level=LEVEL)
            self._digested = digested
        return self._digested


_SETTING = f"zstd dictionary {WITH_DICTIONARY}"


def _unpacked(
    segments: Sequence[Segment], packings: set[int], dictionary: Any
) -> list[bytes]:
    """The bytes of segments, by one decompressor for all that are packed alike.

    To make a decompressor takes longer than to decompress a message with it. One must
    not be shared by threads, so that each read has its own.
    """
    zstd = _zstd()
    unpack: dict[int, Callable[[bytes], bytes]] = {PLAIN: bytes}  # the same object
    for packing, used in ((ALONE, None), (WITH_DICTIONARY, dictionary)):
        if packing in packings:
            unpack[packing] = zstd.ZstdDecompressor(dict_data=used).decompress
    parts: list[bytes] = []
    try:
        parts += (unpack[segment.packing](segment.data) for segment in segments)
    except (zstd.ZstdError, KeyError) as error:
        broken = segments[len(parts)].number
        raise Corrupt(f"segment {broken}", str(error)) from None
    return parts


@cache  # looking for a module that is missing takes longer than compressing
def _zstd() -> Any:
    try:
        return import_module("zstandard")
    except ImportError:
        text = "compression needs zstd: pip install 'holdfast[zstd]'"
        raise Unsupported(text) from None
