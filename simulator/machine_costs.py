"""Costs of the machine that carries out an emulation: most of the table `[machine]`.

The values were measured on two cores of an AMD EPYC while nothing else ran. The method is beside each of them
and in docs/lab/validation.md. `make validate` measures the machine around each run
(experiments.validate.calibrate).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.measured import ENTRIES_S, ENTRY_DIGEST_S, measured_control


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """Costs of a machine, in seconds of the emulation."""

    hop_s: float = 15e-6
    """Seconds of one hop, beyond CPU time: ping over an idle star takes 93 us, for four hops and twice the
    switch."""
    slowdown: float = 0.15
    """Mean share by which work takes longer by chance.

    In a run, nodes' preparations take 0.59 ms in the median and 0.86 ms at p90; undisturbed they take 0.45
    ms. With `node_cold_s` and this value the simulator has 0.66 and 0.81 ms.
    """
    switch_wake_s: float = 15e-6
    switch_packet_s: float = 2.5e-6
    """CPU seconds of the switch per fragment: the embedded switch answers 400,000 hits a second on a core
    (docs/performance.md)."""
    host_wake_s: float = 26e-6
    node_fragment_s: float = 3.1e-6
    store_fragment_s: float = 2.2e-6
    """CPU seconds of a storage node per fragment, measured together with the two values above.

    Measured by python -m hostlib.tools.bench --receive-one-by-one, with blocks of 4 KB and the compiled core.
    In chains of 24 blocks, a fragment takes 3.1 us at the node and 2.2 us at the store. One block at a time,
    in two wake-ups, it takes 13.1 and 8.7 us. A wake-up therefore takes 40 and 26 us; at the node, 28 us a
    block of it are its work before it asks.
    """
    rest_s: float = 15e-3
    node_cold_s: float = 0.15e-3
    node_answer_cold_s: float = 0.2e-3
    store_cold_s: float = 0.13e-3
    """Extra seconds of a storage node's first wake-up after a rest, measured together with the three values
    above.

    After a pause of 100 ms a chain of 1, 6 or 24 blocks costs a node 0.61 to 0.67 ms more, its timer's
    wake-up included, and a storage node 0.14 ms or less. After a pause of 10 ms it is 0.28 to 0.34 ms and
    0.07 to 0.09 ms; after 3 ms it is 0.08 and 0.01 ms. The first probe leaves 0.1 to 0.2 ms later, and a
    block comes 0.21 to 0.57 ms later after it (python -m hostlib.tools.bench --block-bytes 4096 --chain 6
    --receive-one-by-one --pause-ms 100).
    """
    switch_cold_s: float = 0.0
    """Extra seconds of a switch's first wake-up after a rest. It was not measured with the others; a later
    measurement gave 0.06 to 0.14 ms (experiments.validate.control.crossing)."""
    node_block_s: float = 10e-6
    """CPU seconds of a node per block: a request of 25 blocks takes 0.24 ms undisturbed from its arrival to
    its first packet, and 0.32 ms with a gate."""
    store_block_s: float = 21e-6
    """CPU seconds to derive a block's content at its first request: 25 first answers take 0.53 ms longer."""
    index_s: float = 75e-6
    """CPU seconds of an index for a question.

    A question of 9 blocks to hostlib.peer.index takes 0.20 ms until it is answered, with two wake-ups. After
    rests of 30 to 100 ms it takes 0.6 ms; with the costs of rests here it is 0.53 ms. In an emulation it took
    0.58 ms.
    """
    entries_s: float = ENTRIES_S
    """Seconds from a list of digests to its entries; `entry_digest_s` more for each digest in it
    (experiments.validate.control.entries)."""
    entry_digest_s: float = ENTRY_DIGEST_S

    def table(self, speed: float) -> dict[str, Any]:
        """Return the values of `[machine]` if `speed` real seconds are one of the emulation."""
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
"""Costs of the machine of the table in docs/lab/validation.md."""
