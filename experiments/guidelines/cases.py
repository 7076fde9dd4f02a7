"""What is measured: each guideline of Beluga as a series of cases that differ in one thing."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
SEGMENT_BYTES = 1024 * KIB
REQUEST_BYTES = 256 * KIB
PAGE_BYTES = 16 * KIB


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of the table: `nodes` load requests of some bytes, so many at once."""

    guideline: str
    label: str
    nodes: int = 1
    in_flight: int = 1
    request_bytes: int = REQUEST_BYTES
    page_bytes: int = PAGE_BYTES
    homes: int = 2
    hot: bool = False
    """All load the same page, again and again."""
    pool: bool = False
    """Whether the switch pools and merges; else it forwards."""


PUBLISHED = {
    "interleaving": "11.32 against 8.49 queries/s: 1.33",
    "block size": "TTFT 76.8 s with 16 tokens a block, 13.0 s with 256, of Mooncake over RDMA: 5.9",
}
"""Figures of arXiv 2511.20172 for the last case over the first."""


def cases(most_nodes: int) -> list[Case]:
    """In the order of the table; the first of each guideline is what the others are compared with."""
    batches = [
        Case("batch size", f"{count} pages at once", in_flight=count, request_bytes=PAGE_BYTES)
        for count in (1, 4, 16, 64)
    ]
    requests = [
        Case("request size", f"{size // KIB} KiB", request_bytes=size, page_bytes=min(size, PAGE_BYTES))
        for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB)
    ]
    blocks = [
        Case("block size", f"pages of {size} bytes", page_bytes=size) for size in (KIB, 4 * KIB, 16 * KIB)
    ]
    homes = [
        Case("interleaving", f"{count} home{'s' * (count > 1)}", nodes=most_nodes, in_flight=2, homes=count)
        for count in (1, 2)
    ]
    hot = [
        Case("one hot page", "pages of their own, forwarded", most_nodes, 2, PAGE_BYTES),
        Case("one hot page", "one page, forwarded", most_nodes, 2, PAGE_BYTES, hot=True),
        Case("one hot page", "one page, pooled", most_nodes, 2, PAGE_BYTES, hot=True, pool=True),
    ]
    growth = [
        Case("engines", f"{count} engine{'s' * (count > 1)}", count, 2) for count in (1, 2, 4, 6, most_nodes)
    ]
    return [*batches, *requests, *blocks, *homes, *hot, *growth]
