"""What is measured: each guideline of Beluga as a series of cases that differ in one thing, and its figures.

Figures of Beluga are from arXiv 2511.20172 (SIGMOD 2026), by way of notes on it.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
SEGMENT_BYTES = 4096 * KIB
REQUEST_BYTES = 256 * KIB
PAGE_BYTES = 16 * KIB


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table: `nodes` load requests of some bytes, so many at once."""

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
    links_full: bool = False
    """On links so slow that they are what limits, and not this machine's cores."""


@dataclass(frozen=True, slots=True)
class Published:
    """A ratio of throughputs that Beluga's paper gives, beside which ours of two cases is put."""

    guideline: str
    base: str
    """Label of the case that the other is divided by."""
    other: str
    low: float
    high: float
    what: str


PUBLISHED = (
    Published(
        "batch size", "1 page at once", "128 pages at once", 25.6, 37.8,
        "calls of 64 bytes, 128 against 1 in flight: 12.13 M/s against 2.11 µs each over CXL (25.6), "
        "4.5 M/s against 8.39 µs over RDMA (37.8)",
    ),
    Published(
        "request size", "16 KiB", "64 KiB", 3.6, 3.6,
        "CXL to GPU: 16 KB in 10.55 µs, of which 2.68 µs move data; 64 KB in 11.73 µs",
    ),
    Published(
        "block size", "pages of 1 KiB", "pages of 16 KiB", 5.9, 5.9,
        "Mooncake over RDMA, blocks of 256 tokens against 16: mean TTFT 13.0 s against 76.8 s; "
        "Beluga itself keeps to 16",
    ),
    Published("interleaving", "1 home", "2 homes", 1.33, 1.33, "11.32 queries/s against 8.49 without"),
    Published(
        "one hot page", "one page, forwarded", "one page, pooled", 1.78, 2.53,
        "skewed reads of 16 KB: median latency 39.5 to 56.2 % of RDMA's",
    ),
    Published(
        "engines", "1 engine", "2 engines", 1.4, 2.0,
        "two adapters instead of one: 46 GB/s against 23 (reading) or 33 (writing); "
        "no figure was found for 4 to 8 engines",
    ),
)  # fmt: skip


def cases(most_nodes: int) -> list[Case]:
    """In the order of the table; the first of each guideline is what the others are divided by."""
    batches = [
        Case("batch size", f"{count} page{'s' * (count > 1)} at once", 1, count, KIB, KIB)
        for count in (1, 4, 16, 64, 128)
    ]
    requests = [
        Case("request size", f"{size // KIB} KiB", request_bytes=size, page_bytes=min(size, PAGE_BYTES))
        for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB)
    ]
    blocks = [
        Case("block size", f"pages of {size // KIB} KiB", page_bytes=size)
        for size in (KIB, 4 * KIB, 16 * KIB, 64 * KIB)
    ]
    homes = [
        Case("interleaving", f"{count} home{'s' * (count > 1)}", most_nodes, 2, homes=count, links_full=True)
        for count in (1, 2)
    ]
    hot = [
        Case("one hot page", label, most_nodes, 1, PAGE_BYTES, hot=hot, pool=pool, links_full=True)
        for label, hot, pool in (
            ("one page, forwarded", True, False),
            ("one page, pooled", True, True),
            ("pages of their own, forwarded", False, False),
        )
    ]
    growth = [
        Case("engines", f"{count} engine{'s' * (count > 1)}", count, 2, links_full=True)
        for count in sorted({1, 2, 4, 6, most_nodes})
        if count <= most_nodes
    ]
    return [*batches, *requests, *blocks, *homes, *hot, *growth]
