"""make simulate: run a scenario in virtual time, at real scale."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, Existing, Key, Unnamed, Variable
from commands.options import Source, read
from scenario import Scenario
from scenario.reading import DEMO, completed, read_values
from simulator.compiled import core
from simulator.result import SimResult
from simulator.simulation import simulate


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class SimulateOptions(Scenario):
    """`make simulate` simulates a scenario and prints its figures."""

    scenario: Annotated[Path, Existing(), Unnamed(), Variable("SCENARIO")] = DEMO
    """TOML file with a scenario; variables and options change its values."""
    json: bool = False
    """Whether to print all figures as JSON."""


def is_simulated(key: Key) -> bool:
    """Return whether the simulator has the key; files may also have keys of the emulator."""
    return key.path[0] != "emulation"


def main(arguments: Sequence[str]) -> int:
    """Simulate a scenario and print its figures; return exit code 0, or 2 if the scenario cannot be used."""

    def parse(given: Sequence[str]) -> SimulateOptions:
        source = Source(read_values, completed, is_simulated)
        return read(SimulateOptions, given, "weir simulate", __doc__ or "", source)

    return run_command(arguments, parse, _run, interrupted="interrupted")


def _run(screen: Screen, options: SimulateOptions) -> int:
    result = simulate(options)
    if options.json:
        print(json.dumps(result.to_dict(), indent=1))
    else:
        screen.show(_table(options.name, result))
    return 0


def _table(name: str, result: SimResult) -> Table:
    table = Table(title=name)
    table.add_column("")
    table.add_column("", justify="right")
    total = max(1, sum(result.blocks.values()))
    rows = {
        "requests": f"{result.completed:,} in {result.duration_s:,.0f} s",
        "time to first token, mean / p50 / p99": _seconds(
            result.ttft_s.mean, result.ttft_s.p50, result.ttft_s.p99
        ),
        "time per output token, mean / p50 / p99": _seconds(
            result.tpot_s.mean, result.tpot_s.p50, result.tpot_s.p99
        ),
        "time between tokens, mean / p50 / p99": _seconds(
            result.between_tokens_s.mean, result.between_tokens_s.p50, result.between_tokens_s.p99
        ),
        "end to end, mean / p50 / p99": _seconds(
            result.end_to_end_s.mean, result.end_to_end_s.p50, result.end_to_end_s.p99
        ),
        "throughput": f"{result.requests_per_s:.2f} requests/s, {result.output_tokens_per_s:,.0f} tokens/s",
        **{
            f"blocks: {source}": f"{count:,} ({count / total:.1%})" for source, count in result.blocks.items()
        },
        **_blended(result),
        **_streamed(result),
        "storage sent": f"{result.storage_egress_bytes / 1e12:.3f} TB",
        "busiest storage link": f"{result.storage_busy_share:.1%}",
        "switches served": f"{result.switch_served_bytes / 1e12:.3f} TB",
        "requests merged": f"{result.merged:,} fragments",
        "controller": f"{result.digests:,} digests, {result.table_updates:,} updates, "
        f"{result.control_bytes / 1e6:.1f} MB, {result.control_cpu_s:.1f} s of CPU",
        "GPU prefill done / saved": f"{result.prefill_s:,.0f} s / {result.saved_prefill_s:,.0f} s",
        "dollars an hour": f"{result.dollars_per_hour:,.2f}",
        "of which cache": f"{result.cache_dollars_per_hour:,.2f}",
        "cache dollars a saved GPU second": "none saved"
        if result.dollars_per_saved_s is None
        else f"{result.dollars_per_saved_s:.6f}",
        "simulated in": f"{result.cpu_s:.1f} s of CPU, {core()}",
    }
    for label, value in rows.items():
        table.add_row(label, value)
    return table


def _blended(result: SimResult) -> dict[str, str]:
    totals = result.blended
    if totals is None:
        return {}
    return {
        "requests blended": f"{totals.requests:,}",
        "chunks blended": f"{totals.chunks:,}, {totals.alone:,} of them computed by themselves",
        "tokens of chunks recomputed": f"{totals.tokens:,}",
        "operations saved by blending": f"{totals.ops_saved:.1%}",
    }


def _streamed(result: SimResult) -> dict[str, str]:
    """Return rows for the levels of streams and for the TTFT target, as far as the scenario has them."""
    rows = {}
    total = sum(result.levels.values())
    if total:
        rows["streamed at level"] = ", ".join(
            f"{level} {count / total:.1%}" for level, count in result.levels.items()
        )
        rows["mean level"] = "none" if result.mean_level is None else f"{result.mean_level:.2f}"
    if result.met_share is not None:
        rows["first token within workload.ttft_slo_s"] = f"{result.met_share:.1%}"
    return rows


def _seconds(*values: float) -> str:
    return " / ".join(f"{value:.3f} s" for value in values)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
