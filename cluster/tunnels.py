"""Measurement of the tunnels between servers, and whether they carry the links that go through them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from cluster.agents import Agents
from cluster.errors import ServerError
from cluster.messages import PYTHON
from topologies.part import MAX_NETWORK_ID, VXLAN_BYTES, VXLAN_PORT

Pair = tuple[str, str]
"""Two servers' names, in alphabetical order."""
BENCH_TIMEOUT_S: Final = 60.0
MOST_SHARE: Final = 0.5
"""Share of one thread's measured rate that the links in a tunnel may ask for: both ends also do other work.
"""


@dataclass(frozen=True, slots=True)
class TunnelFigures:
    """Measured figures of one tunnel."""

    rtt_us: float
    """Round-trip time of a small packet in us: tunnel and network below it add this to a path."""
    lost_share: float
    frames_per_s: float
    """Frames per second that arrived when one thread sent as fast as it could."""
    send_us: float
    """CPU time of the sender for each frame, in us."""
    frame_bytes: int

    @property
    def carries_bit_s(self) -> float:
        """Return the measured rate in bit/s, without the tunnel's headers, as rates of links are counted."""
        return 8.0 * self.frame_bytes * self.frames_per_s


def measure_tunnels(pairs: Iterable[Pair], agents: Agents, frame_bytes: int) -> dict[Pair, TunnelFigures]:
    """Measure the tunnel of each pair, one after the other, with frames of `frame_bytes`.

    Raises ServerError if nothing comes through.
    """
    return {pair: _measure(pair, agents, frame_bytes) for pair in pairs}


def _measure(pair: Pair, agents: Agents, frame_bytes: int) -> TunnelFigures:
    network_id = str(1 + secrets.randbelow(MAX_NETWORK_ID))
    addresses = [agents.servers[name].reached_at for name in pair]

    def run(role: str, own: int) -> str:
        there = [network_id, addresses[own], addresses[1 - own], str(frame_bytes)]
        command = [PYTHON, "-m", "cluster.tunnel_bench", role, *there]
        return str(agents.sessions[pair[own]].ask("run", command=command, timeout_s=BENCH_TIMEOUT_S))

    with ThreadPoolExecutor(max_workers=2) as pool:
        answering, asking = pool.submit(run, "answer", 0), pool.submit(run, "ask", 1)
        try:
            figures = TunnelFigures(frame_bytes=frame_bytes, **json.loads(asking.result()))
            answering.result()
        except ServerError as error:
            raise ServerError(_no_frames(pair, addresses, frame_bytes, str(error))) from None
    if not figures.frames_per_s:
        raise ServerError(_no_frames(pair, addresses, frame_bytes, "small ones did"))
    return figures


def _no_frames(pair: Pair, addresses: Sequence[str], frame_bytes: int, why: str) -> str:
    return (
        f"servers {pair[0]} and {pair[1]}: no packet of {frame_bytes + VXLAN_BYTES} bytes came through a "
        f"tunnel between {addresses[0]} and {addresses[1]}: see that these are the servers' addresses, and "
        f"let UDP port {VXLAN_PORT} pass there in both directions, with packets or fragments of that size; "
        f"VALUE_BYTES=512 makes smaller ones ({why.splitlines()[-1]})"
    )


def too_slow(
    asked_bit_s: Mapping[Pair, float], measured: Mapping[Pair, TunnelFigures]
) -> tuple[Pair, float] | None:
    """Return the most overloaded tunnel and the factor by which it is; None if all carry what is asked."""
    over = {
        pair: rate_bit_s / (MOST_SHARE * max(1.0, measured[pair].carries_bit_s))
        for pair, rate_bit_s in asked_bit_s.items()
    }
    worst = max(over, key=over.__getitem__, default=None)
    return None if worst is None or over[worst] <= 1 else (worst, over[worst])
