"""Contents of each experiment's summary.json, as dataclasses; schemas and a reference page
are generated from them.

Later versions may add keys; no key changes its meaning (docs/stability.md). Tests validate what experiments
wrote against these classes.
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
"""Content of summary.json, by command."""
CRASHED: Final = common.Crashed
"""Content of summary.json if a process ended that should not have."""
