"""What the numbers were measured on."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from benchmarks.contest import environment as packaged
from benchmarks.contest.workload import Writer
from benchmarks.inner.cli import file_system

PEERS = (
    "langgraph",
    "langgraph-checkpoint-postgres",
    "langgraph-checkpoint-sqlite",
    "openai-agents",
)
CHUNK = 1500
LICENSE = Path(__file__).resolve().parent.parent / "LICENSE"


def environment(folder: str) -> dict[str, str]:
    """Machine, versions, and what is saved on what."""
    return {
        **packaged.environment(PEERS),
        "file system": file_system(folder) or "unknown",
        "text": _compressibility(),
    }


def _compressibility() -> str:
    """How far the generated text can be packed, beside text that people wrote."""
    try:
        pack = import_module("zstandard").ZstdCompressor(level=3).compress
    except ImportError:
        return "generated; zstd is not installed to say how dense"

    def left(text: str) -> float:
        data = text.encode()
        chunks = [data[n : n + CHUNK] for n in range(0, len(data) - CHUNK, CHUNK)]
        packed: int = sum(len(pack(chunk)) for chunk in chunks)
        return packed / len(chunks) / CHUNK

    generated, written = left(Writer().text(200_000)), left(LICENSE.read_text())
    return (
        f"generated; zstd leaves {generated:.2f} of {CHUNK} bytes of it"
        f" ({written:.2f} of our LICENSE)"
    )
