"""Table of ways in which ranks of an MLA model get the KV that they all need."""

from __future__ import annotations

from workload.rank_loads import WAYS, Ranks

TOKENS = 128_000
PLACES = {
    "8 ranks of one server, a link each": Ranks(),
    "8 ranks of one server behind one link": Ranks(own_links=False),
    "8 ranks of one server, a link each, no NVLink": Ranks(nvlink_bytes_s=0.0),
    "8 ranks on 8 servers": Ranks(servers=8),
    "16 ranks on 2 servers": Ranks(ranks=16, servers=2),
    "64 ranks on 8 servers": Ranks(ranks=64, servers=8),
}


def table(tokens: int = TOKENS) -> list[str]:
    """Return the lines of a Markdown table: milliseconds, and number of copies that storage nodes send."""
    lines = ["| ranks | " + " | ".join(WAYS) + " |", "|---" * (1 + len(WAYS)) + "|"]
    for name, ranks in PLACES.items():
        size = ranks.kv_bytes(tokens)
        loads = [way(ranks, size) for way in WAYS.values()]
        cells = [
            "needs NVLink" if load is None else f"{1e3 * load.seconds:.0f} ms, {load.sent_bytes / size:.0f}"
            for load in loads
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines
