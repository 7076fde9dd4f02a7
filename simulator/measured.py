"""Measurements of the live control plane, which the comparison with the emulator and the study use.

Seconds are real ones; in a run that is compressed in time, they are longer by as much.
"""

from __future__ import annotations

from typing import Final

from controller.p4runtime.base_state import DIGEST_TIMEOUT_NS

SWITCH_DIGEST_CPU_S: Final = 47e-6
"""CPU seconds of the switch for a digest and the entry that it leads to, measured in lists of 100 ms on a
quiet machine (docs/emulation.md)."""
LIST_S: Final = DIGEST_TIMEOUT_NS / 1e9
"""Seconds for which switches gather digests, except for the first after a pause."""
ENTRIES_S: Final = 2.5e-3
ENTRY_DIGEST_S: Final = 56e-6
"""Seconds that each digest in a list adds to `ENTRIES_S`, the seconds from when the list leaves the switch to
its entries (experiments.validate.control.entries)."""
AT_ONCE_PER_S: Final = 1e9
"""Rate of table updates per second that stands for "at once": the entries of a Write can be used at the same
time, those of 64 digests within 0.1 ms (the same experiment)."""
REPORT_COUNT: Final = 1
"""Number of misses after which the switch reports a block: the demo's controller hears of every miss
(emulator.scenario)."""


def measured_control(
    slower: float = 1.0, entries_s: float = ENTRIES_S, entry_digest_s: float = ENTRY_DIGEST_S
) -> dict[str, float]:
    """Return the table [control] of a scenario whose software takes `slower` times as long as the live
    one."""
    return {
        "report_count": REPORT_COUNT,
        "list_s": LIST_S * slower,
        "digest_latency_s": entries_s / 2 * slower,
        "digest_cpu_s": entry_digest_s * slower,
        "write_latency_s": entries_s / 2 * slower,
        "writes_per_s": AT_ONCE_PER_S,
    }
