"""The trace of an incast: in each round all nodes ask at once for one stored document."""

from __future__ import annotations

import json
from pathlib import Path

DOCUMENT_BLOCKS = 24
BLOCK_TOKENS = 512
ROUND_MS = 1500
FIRST_MS = 1250
"""Milliseconds at which the first round begins: rounds avoid the half seconds, at
which all processes report."""


def write_incast(path: Path, nodes: int, rounds: int) -> Path:
    """Write the trace and return its path: documents are stored at time 0, then each round asks
    for its own one."""
    stored = [(0, _document(number)) for number in range(rounds)]
    requests = [
        (FIRST_MS + ROUND_MS * number, [*_document(number), (rounds + number) * 1000 + node])
        for number in range(rounds)
        for node in range(nodes)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(_line(at_ms, chain) for at_ms, chain in [*stored, *requests]))
    return path


def _document(number: int) -> list[int]:
    return list(range(number * 1000, number * 1000 + DOCUMENT_BLOCKS))


def _line(at_ms: int, chain: list[int]) -> str:
    record = {
        "timestamp": at_ms,
        "input_length": BLOCK_TOKENS * len(chain),
        "output_length": 10,
        "hash_ids": chain,
    }
    return json.dumps(record) + "\n"
