"""What was measured of the live control plane: for what the emulator is compared with, the study, its ledger.

Seconds are real ones; where a run is compressed in time, they are longer by as much.
"""

from __future__ import annotations

from typing import Final

from controller.p4runtime.base_state import DIGEST_TIMEOUT_NS

SWITCH_DIGEST_CPU_S: Final = 47e-6
"""Of the switch's own processor for a digest and the entry that it leads to, measured in lists of 100 ms on a
quiet machine (docs/emulation.md)."""
LIST_S: Final = DIGEST_TIMEOUT_NS / 1e9
"""So long switches gather digests, but for the first after a pause."""
ENTRIES_S: Final = 2.5e-3
ENTRY_DIGEST_S: Final = 56e-6
"""From when a list of digests leaves the switch to its entries: by itself, and for each digest in it
(experiments.validate.control.entries)."""
AT_ONCE_PER_S: Final = 1e9
"""The entries of a Write can be used at the same time, those of 64 digests within 0.1 ms (the same)."""
REPORT_COUNT: Final = 1
"""The demo's controller hears of every miss (emulator.scenario)."""


def measured_control(
    slower: float = 1.0, entries_s: float = ENTRIES_S, entry_digest_s: float = ENTRY_DIGEST_S
) -> dict[str, float]:
    """Return the table [control] of a scenario whose software takes so many times as long as it does live."""
    return {
        "report_count": REPORT_COUNT,
        "list_s": LIST_S * slower,
        "digest_latency_s": entries_s / 2 * slower,
        "digest_cpu_s": entry_digest_s * slower,
        "write_latency_s": entries_s / 2 * slower,
        "writes_per_s": AT_ONCE_PER_S,
    }
