"""What summary.json of each experiment holds, as dataclasses, of which schemas and a reference page are made.

Keys may be added in a later version; none changes its meaning (docs/stability.md). Tests validate what
experiments wrote against these.
"""

from __future__ import annotations

from typing import Final

from experiments.summaries import common, emulated, parts, simulated

SUMMARIES: Final[dict[str, type]] = {
    "run": emulated.Run,
    "incast": emulated.Incast,
    "engines": emulated.Engines,
    "faults": emulated.Faults,
    "soak": emulated.Soak,
    "intruders": emulated.Intruders,
    "policies": simulated.Policies,
    "tiers": simulated.Tiers,
    "claims": simulated.Claims,
    "study": simulated.Study,
    "validate": simulated.Validate,
    "worth": simulated.Worth,
    "simulate-faults": simulated.SimulateFaults,
    "kv-conformance": parts.KvConformance,
    "blocks": parts.Blocks,
    "mutate": parts.Mutate,
    "stf": parts.Stf,
    "testgen": parts.Stf,
    "corpus": parts.Corpus,
    "bench switch": parts.BenchSwitch,
    "bench tables": parts.BenchTables,
    "bench hosts": parts.BenchHosts,
    "bench values": parts.BenchValues,
    "bench emulation": parts.BenchEmulation,
}
"""By command: what its summary.json holds."""
CRASHED: Final = common.Crashed
"""What it holds instead if a process ended that should not have."""
