"""MODEL=folder: the blocks of a run hold KV that this model computes instead of made-up bytes.

The model is run beforehand in the engines' environment, as PyTorch is not in the project's. Times and link
rates stay those of the cost model's preset: a small model's KV on a scaled link stands for a large one's.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands.errors import ExperimentError
from emulator.kv_blocks import EXIT_UNUSABLE
from emulator.result import ROOT
from emulator.scenario import Scenario

PYTHON = ROOT / ".venv-engines" / "bin" / "python"


class RealKvError(ExperimentError):
    """The KV can't be computed; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class RealKv:
    """Description of the written blocks for readers of the results."""

    path: Path
    model: str
    blocks: int
    tokens_a_block: int
    token_bytes: int

    @property
    def summary(self) -> str:
        """Return a description of the blocks in a few words."""
        each = f"{self.tokens_a_block} tokens of {self.token_bytes:,} bytes"
        return f"{self.blocks:,} blocks, each the KV of {each}"


def compute_kv(
    scenario: Scenario, folder: Path, directory: Path, show: Callable[[int, int], None], python: Path = PYTHON
) -> RealKv:
    """Compute the blocks of the run and of its past; `show` gets chains done and in all.

    Raises RealKvError.
    """
    if not python.exists():
        raise RealKvError(
            f"MODEL={folder}: the KV is computed with transformers and PyTorch, and their environment "
            f"{python.parents[1].name} is missing. sh scripts/setup-engines.sh makes it (2.5 GB)"
        )
    requests = (*scenario.trace.past, *scenario.trace.requests)
    chains = list(dict.fromkeys(request.blocks for request in requests))
    chains.sort(key=len, reverse=True)  # prefixes of longer chains are computed with those
    out = directory / "kv"
    job = {
        "model": str(folder.resolve()),
        "block_bytes": scenario.block_bytes,
        "seed": scenario.options.workload.seed,
        "chains": chains,
        "keys": [[key.hex() for key in scenario.key_space.chain(chain)] for chain in chains],
        "out": str(out),
    }
    path = directory / "kv.json"
    path.write_text(json.dumps(job))
    summary = _run([str(python), "-m", "emulator.kv_blocks", str(path)], len(chains), folder, show)
    return RealKv(out, str(folder), **summary)


def _run(command: list[str], chains: int, folder: Path, show: Callable[[int, int], None]) -> dict[str, Any]:
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        summary: dict[str, Any] = {}
        try:
            for line in process.stdout:
                event = json.loads(line)
                if event.pop("event") == "written":
                    summary = event
                else:
                    show(event["chains"], chains)
            errors = process.stderr.read().strip()
        except BaseException:
            process.kill()
            raise
    if process.returncode == EXIT_UNUSABLE:
        raise RealKvError(f"MODEL={folder}: {errors.splitlines()[-1]}")
    if process.returncode or not summary:
        raise RealKvError(f"MODEL={folder}: computing its KV failed:\n{errors[-2000:]}")
    return summary
