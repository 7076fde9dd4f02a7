"""Ways for tensor-parallel ranks that need the same KV to load it: the bytes and the time of each.

With multi-head latent attention (MLA) every rank needs the same latent KV, so R ranks that load by themselves
load it R times. Times are lower bounds: those of the slowest link, with all transfers in a pipeline and no
other traffic. NVLink has 450 GB/s a direction (NVIDIA H100 datasheet: 900 GB/s both ways).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workload.cost import MODELS, ModelSpec

NVLINK_BYTES_S = 450e9
GBIT_BYTES = 1e9 / 8


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of one model, their servers, and the links between them and the KV's homes."""

    ranks: int = 8
    servers: int = 1
    """Number of servers over which the ranks are spread evenly. NVLink joins only ranks of one server."""
    own_links: bool = True
    """Whether each rank has a network link; otherwise all ranks of a server share one."""
    link_gbit_s: float = 400.0
    homes: int = 2
    """Number of storage nodes over which the blocks are spread evenly."""
    home_gbit_s: float = 400.0
    nvlink_bytes_s: float = NVLINK_BYTES_S
    """Bytes per second of NVLink in one direction; 0 means there is no NVLink."""
    model: ModelSpec = MODELS["deepseek-v3"]

    @property
    def in_server(self) -> int:
        """Return the number of ranks per server."""
        return self.ranks // self.servers

    def kv_bytes(self, tokens: int) -> float:
        """Return the bytes of a prefix's KV, which is the same on every rank."""
        return self.model.kv_bytes_per_token * tokens


@dataclass(frozen=True, slots=True)
class Load:
    """Cost of one way to load."""

    seconds: float
    sent_bytes: float
    """Bytes that the homes send."""


def _load(ranks: Ranks, sent: float, on_link: float, on_nvlink: float = 0.0) -> Load | None:
    """Return the load with these bytes from homes, over the busiest network link, and over NVLink.

    Returns None if it needs NVLink and there is none.
    """
    if on_nvlink and not ranks.nvlink_bytes_s:
        return None
    times = [
        sent / (ranks.homes * ranks.home_gbit_s * GBIT_BYTES),
        on_link / (ranks.link_gbit_s * GBIT_BYTES),
        on_nvlink / ranks.nvlink_bytes_s if on_nvlink else 0.0,
    ]
    return Load(max(times), sent)


def each_loads_all(ranks: Ranks, size: float) -> Load | None:
    """Return the load if every rank loads everything by itself."""
    on_link = size if ranks.own_links else size * ranks.in_server
    return _load(ranks, size * ranks.ranks, on_link)


def one_loads_and_broadcasts(ranks: Ranks, size: float) -> Load | None:
    """Return the load if one rank of each server loads, and broadcasts over NVLink
    (sgl-project/sglang#37950)."""
    return _load(ranks, size * ranks.servers, size, size if ranks.in_server > 1 else 0.0)


def each_loads_a_part(ranks: Ranks, size: float) -> Load | None:
    """Return the load if each rank of a server loads a part, and the ranks gather all parts over NVLink."""
    part = size / ranks.in_server
    on_nvlink = size - part
    return _load(ranks, size * ranks.servers, part if ranks.own_links else size, on_nvlink)


def switch_multicasts(ranks: Ranks, size: float) -> Load | None:
    """Return the load if the switch merges the ranks' requests and copies the reply to each.

    Ranks that share a link get one copy each over it.
    """
    on_link = size if ranks.own_links else size * ranks.in_server
    return _load(ranks, size, on_link)


def switch_multicasts_parts(ranks: Ranks, size: float) -> Load | None:
    """Return the load if each rank asks for a part, and the ranks of a server gather all parts over NVLink.

    The switch merges a rank's request with those of the same rank of other servers.
    """
    part = size / ranks.in_server
    return _load(ranks, size, part if ranks.own_links else size, size - part)


WAYS: dict[str, Callable[[Ranks, float], Load | None]] = {
    "each rank loads all": each_loads_all,
    "one loads, NVLink broadcast": one_loads_and_broadcasts,
    "each loads a part, NVLink all-gather": each_loads_a_part,
    "switch merges and multicasts": switch_multicasts,
    "switch merges parts, NVLink all-gather": switch_multicasts_parts,
}
"""Functions by description; they return None if they need NVLink and there is none."""
