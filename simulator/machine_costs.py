"""What the machine that carries an emulation out takes for it: most of the table `[machine]`.

The values here were measured on two cores of an AMD EPYC while nothing else ran; how, stands beside each of
them and in docs/lab/validation.md. `make validate` measures the machine around each play
(experiments.validate.calibrate).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.measured import ENTRIES_S, ENTRY_DIGEST_S, measured_control


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """Seconds of the emulation, all of them."""

    hop_s: float = 15e-6
    """Of one hop, beyond CPU time: ping over an idle star takes 93 us, four hops and the switch twice."""
    slowdown: float = 0.15
    """Mean share by which work takes longer by chance. In a run, nodes' preparations take 0.59 ms in the
    median and 0.86 ms at p90, undisturbed 0.45 ms: with node_cold_s and this 0.66 and 0.81."""
    switch_wake_s: float = 15e-6
    switch_packet_s: float = 2.5e-6
    """The embedded switch answers 400,000 hits a second on a core (docs/performance.md)."""
    host_wake_s: float = 26e-6
    node_fragment_s: float = 3.1e-6
    store_fragment_s: float = 2.2e-6
    """python -m hostlib.tools.bench --receive-one-by-one, blocks of 4 KB, compiled core: in chains of 24 it
    is 3.1 us a fragment at the node and 2.2 at the store, one block at a time, in two wake-ups, 13.1 and 8.7:
    a wake-up takes 40 and 26 us, but 28 us a block of the node's are what it does before it asks."""
    rest_s: float = 15e-3
    node_cold_s: float = 0.15e-3
    node_answer_cold_s: float = 0.2e-3
    store_cold_s: float = 0.13e-3
    """After a pause of 100 ms a chain of 1, 6 or 24 blocks costs a node 0.61 to 0.67 ms more, its timer's
    wake-up included, and a storage node 0.14 ms or less; of that 0.28 to 0.34 and 0.07 to 0.09 ms after one
    of 10 ms, 0.08 and 0.01 after one of 3 ms. The first probe leaves 0.1 to 0.2 ms later, and a block comes
    0.21 to 0.57 ms later after it (python -m hostlib.tools.bench --block-bytes 4096 --chain 6
    --receive-one-by-one
    --pause-ms 100)."""
    switch_cold_s: float = 0.0
    """Not measured then; since then 0.06 to 0.14 ms (experiments.validate.control.crossing)."""
    node_block_s: float = 10e-6
    """A request of 25 blocks, from its arrival to its first packet: 0.24 ms undisturbed, 0.32 with a gate."""
    store_block_s: float = 21e-6
    """Deriving a block's content when it is first asked for: 25 first answers take 0.53 ms longer."""
    index_s: float = 75e-6
    """A question of 9 blocks to hostlib.peer.index takes 0.20 ms until it is answered, two wake-ups among
    them; after rests of 30 to 100 ms 0.6, and 0.53 with what rests cost here. Played it took 0.58."""
    entries_s: float = ENTRIES_S
    """From a list of digests to its entries, and for each digest in it
    (experiments.validate.control.entries)."""
    entry_digest_s: float = ENTRY_DIGEST_S

    def table(self, speed: float) -> dict[str, Any]:
        """For `[machine]`, where `speed` real seconds are one of the emulation."""
        return {
            "slowdown": self.slowdown,
            "switch_wake_s": self.switch_wake_s * speed,
            "switch_packet_s": self.switch_packet_s * speed,
            "host_wake_s": self.host_wake_s * speed,
            "rest_s": self.rest_s * speed,
            "node_cold_s": self.node_cold_s * speed,
            "node_answer_cold_s": self.node_answer_cold_s * speed,
            "store_cold_s": self.store_cold_s * speed,
            "switch_cold_s": self.switch_cold_s * speed,
            "node_block_s": self.node_block_s * speed,
            "node_fragment_s": self.node_fragment_s * speed,
            "store_block_s": self.store_block_s * speed,
            "store_fragment_s": self.store_fragment_s * speed,
            "index_s": self.index_s * speed,
        }

    def control(self, speed: float) -> Mapping[str, float]:
        """Return the values of `[control]`, likewise."""
        return measured_control(speed, self.entries_s, self.entry_digest_s)


MEASURED = MachineCosts()
"""The machine of the table in docs/lab/validation.md."""
