"""List of all commands, each with its program, the dataclass of its keys and a text for its user.

`weir COMMAND` and `make COMMAND` run these programs (`experiments.__main__`). This module imports none of
them, so that `weir --help` is quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EMULATION: Final = "Emulate, as root with Mininet"
SIMULATION: Final = "Simulate and replay"
TRAFFIC: Final = "Traces and running pools"
PARTS: Final = "Measure and test parts"
GROUPS: Final = (EMULATION, SIMULATION, TRAFFIC, PARTS)
"""Headings of `weir --help`, in order."""


@dataclass(frozen=True, slots=True)
class Command:
    """Command of `weir`, of make, or of both."""

    group: str
    """Heading of `weir --help` that the command is listed under."""
    text: str
    """Description for `weir --help`."""
    program: str
    """Module with a function `main(arguments)` that returns the exit code; empty: make alone runs it."""
    keys: str = ""
    """Module and dataclass of its keys; empty: it takes no variables from make."""
    needs_checkout: bool = False
    """Whether it needs the project's own files, environments or tests."""


_HERE: Final = "experiments.keys"
COMMANDS: Final = {
    "run": Command(
        EMULATION,
        "play a trace on a network without and with the pool, and compare",
        "experiments.run.__main__",
        "emulator.options:RunOptions",
    ),
    "topo": Command(
        EMULATION,
        "start a topology with switch and controller, and give Mininet's command line",
        "experiments.run.topo",
        "experiments.run.topo:TopoOptions",
    ),
    "simulate": Command(
        SIMULATION,
        "simulate the scenario of run, or of a file, at real scale",
        "experiments.simulate.__main__",
        "experiments.simulate.__main__:SimulateOptions",
    ),
    "shell": Command(
        EMULATION,
        "open p4runtime-shell on a running switch",
        "experiments.run.shell",
        "experiments.run.shell:ShellOptions",
        needs_checkout=True,
    ),
    "policies": Command(
        SIMULATION,
        "replay a trace through all admission and eviction policies",
        "experiments.policies.__main__",
        "experiments.policies.options:PoliciesOptions",
    ),
    "tiers": Command(
        SIMULATION,
        "simulate a trace in the whole hierarchy: tier rules, gate, prefetch",
        "experiments.tiers.__main__",
        "experiments.tiers.options:TiersOptions",
    ),
    "incast": Command(
        EMULATION,
        "have many nodes ask one storage node for the same blocks",
        "experiments.incast.__main__",
        "experiments.incast.options:IncastOptions",
    ),
    "engines": Command(
        EMULATION,
        "run vLLM on the pool: recomputing, storage nodes and the pool compared",
        "experiments.engines.__main__",
        "experiments.engines.options:EnginesOptions",
        needs_checkout=True,
    ),
    "kv-conformance": Command(
        PARTS,
        "compare any KV connector with recomputing: keys, failures, races, bounds",
        "engines.conformance.__main__",
        f"{_HERE}:ConformanceOptions",
    ),
    "blocks": Command(
        PARTS,
        "measure KV codecs and chunk reuse on a real transformer",
        "experiments.blocks.__main__",
        "experiments.blocks.options:BlocksOptions",
        needs_checkout=True,
    ),
    "faults": Command(
        EMULATION,
        "kill, stop and cut off parts of a network under load",
        "experiments.faults.__main__",
        "experiments.faults.options:FaultsOptions",
    ),
    "soak": Command(
        EMULATION,
        "run one network for long under load and random faults, and look for leaks",
        "experiments.faults.soak",
        "experiments.faults.soak:SoakOptions",
    ),
    "intruders": Command(
        EMULATION,
        "flood the network from one port while others work",
        "experiments.faults.intruders",
        "experiments.faults.intruders:IntrudersOptions",
    ),
    "validate": Command(
        SIMULATION,
        "compare the simulator with the emulator (as root) and with published figures",
        "experiments.validate.__main__",
        "experiments.validate.options:ValidateOptions",
    ),
    "study": Command(
        SIMULATION,
        "find where the pool pays: sweeps and a report",
        "experiments.study.__main__",
        "experiments.study.options:StudyOptions",
    ),
    "claims": Command(
        SIMULATION,
        "say what merging and pools are worth where many readers need the same blocks",
        "experiments.claims.__main__",
        "experiments.claims.__main__:ClaimsOptions",
    ),
    "simulate-faults": Command(
        SIMULATION,
        "run whole systems in virtual time with random faults",
        "experiments.simulate_faults.__main__",
        "experiments.simulate_faults.__main__:SimulateFaultsOptions",
    ),
    "worth": Command(
        SIMULATION,
        "compare compressing with a larger pool, and blending with recomputing",
        "experiments.worth.__main__",
        "experiments.worth.__main__:WorthOptions",
    ),
    "bench": Command(
        PARTS,
        "measure one part, such as switch, tables or hosts",
        "experiments.bench.__main__",
        f"{_HERE}:BenchOptions",
    ),
    "bench switch": Command(PARTS, "", "", "experiments.bench.switch.options:BenchOptions"),
    "bench tables": Command(PARTS, "", "", "experiments.bench.tables.__main__:TablesOptions"),
    "bench hosts": Command(PARTS, "", "", "experiments.bench.hosts.__main__:HostsOptions"),
    "bench emulation": Command(PARTS, "", "", "experiments.bench.emulation.__main__:EmulationOptions"),
    "bench values": Command(PARTS, "", "", "experiments.bench.values.__main__:ValuesOptions"),
    "trace": Command(
        TRAFFIC, "write a generated trace, or say what a trace file holds", "experiments.traces"
    ),
    "pool": Command(
        TRAFFIC, "list, delete or hint at what a tenant has in a pool", "hostlib.engine.pool_command"
    ),
    "stf": Command(
        PARTS, "run STF conformance tests below a folder", "v1model.stf.__main__", f"{_HERE}:StfOptions"
    ),
    "testgen": Command(
        PARTS,
        "run P4Testgen's tests of every v1model program below a folder",
        "v1model.testgen",
        f"{_HERE}:TestgenOptions",
    ),
    "corpus": Command(
        PARTS,
        "compile every v1model program below a folder",
        "v1model.corpus.__main__",
        f"{_HERE}:CorpusOptions",
    ),
    "test-bmv2": Command(PARTS, "", "", f"{_HERE}:TestOptions"),
    "mutate": Command(
        PARTS,
        "change the modules that keep the promises, and count what tests notice",
        "experiments.mutate.__main__",
        "experiments.mutate.__main__:MutateOptions",
        needs_checkout=True,
    ),
    "fuzz": Command(
        PARTS,
        "try hostile packets, requests and texts, with sanitizers",
        "experiments.fuzz",
        "experiments.fuzz:FuzzOptions",
    ),
}
"""Commands by name. Those without a program are parts of another command, or only targets of make."""
PROGRAMS: Final = {name: command for name, command in COMMANDS.items() if command.program}
"""Commands that `weir` runs, by name."""
