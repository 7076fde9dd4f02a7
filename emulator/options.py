"""Options of `make run`: a scenario, and its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, Self, TypeVar

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Existing, Key, Variable, keys_of
from commands.errors import OptionError
from commands.options import Source, read
from controller.config import AUTO
from hostlib.model.gate import ANSWERS
from scenario import GB, Scenario
from scenario.reading import DEMO, completed, read_values
from scenario.rules import PLAYED
from workload.cost import DEFAULT_MODEL, MODELS, make_cost_model
from workload.trace import MOONCAKE, Trace

AnyOptions = TypeVar("AnyOptions", bound="RunOptions")


class ModelChoice(NamedTuple):
    """Model of MODEL: a preset, or a folder with a model whose KV is real while times are a preset's."""

    preset: str
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class RunOptions(Scenario):
    """Options of one `make run`: a scenario as the emulator reads it."""

    scenario: Annotated[Path, Existing(), Variable("SCENARIO")] = DEMO
    """TOML file with a scenario; variables override its keys."""

    @property
    def model_choice(self) -> ModelChoice:
        """Return the preset, and the folder of a model whose KV is real."""
        if self.model.name in MODELS:
            return ModelChoice(self.model.name)
        return ModelChoice(DEFAULT_MODEL, Path(self.model.name))

    @property
    def results(self) -> Path:
        """Return the folder for the results."""
        return self.emulation.results

    @property
    def scale(self) -> float | None:
        """Return sigma; None if the machine chooses it."""
        return None if isinstance(self.emulation.sigma, str) else self.emulation.sigma

    @property
    def stores(self) -> int:
        """Return the number of storage nodes; 0 if nodes lend one another their memory."""
        return 0 if self.lends else self.storage.count

    @property
    def gate(self) -> bool:
        """Return whether nodes compare fetching with computing."""
        return self.nodes.gate == "compare"

    @property
    def fetch(self) -> bool:
        """Return whether nodes fetch blocks at all."""
        return self.nodes.gate != "never"

    @property
    def hints(self) -> str:
        """Return the source of the gate's knowledge of homes; with lent memory it is an index instead."""
        return ANSWERS if self.lends else self.nodes.hints

    @property
    def eviction(self) -> str:
        """Return which evicted blocks the switch sends to a home; nodes that lend memory take none."""
        if self.control.eviction != AUTO:
            return self.control.eviction
        return "drop" if self.lends else "value"

    @property
    def pool_blocks(self) -> int:
        """Return the blocks that the pool of each switch holds, at least one."""
        return max(1, _blocks(self.pool.blocks, self.pool.size_gb, self._block_bytes))

    @property
    def gpu_blocks(self) -> int:
        """Return the blocks of GPU memory of a node."""
        return _blocks(self.nodes.gpu_blocks, self.nodes.gpu_gb, self._block_bytes)

    @property
    def dram_blocks(self) -> int:
        """Return the blocks of DRAM of a node."""
        return _blocks(self.nodes.dram_blocks, self.nodes.dram_gb, self._block_bytes)

    @property
    def store_blocks(self) -> int:
        """Return the blocks of DRAM of a storage node."""
        return _blocks(self.storage.dram_blocks, self.storage.dram_gb, self._block_bytes)

    @property
    def _block_bytes(self) -> float:
        """Return the bytes of a plain block whose tokens are those of generated traffic."""
        tokens = self.generated_tokens
        return make_cost_model(self.model_choice.preset, self.model.gpu, tokens).block_bytes

    def in_blocks(self, block_bytes: float) -> Self:
        """Return the options with all memory given in blocks of so many bytes."""
        nodes, storage, pool = self.nodes, self.storage, self.pool
        return self.changed(
            nodes={
                "gpu_blocks": _blocks(nodes.gpu_blocks, nodes.gpu_gb, block_bytes),
                "dram_blocks": _blocks(nodes.dram_blocks, nodes.dram_gb, block_bytes),
            },
            storage={"dram_blocks": _blocks(storage.dram_blocks, storage.dram_gb, block_bytes)},
            pool={"blocks": max(1, _blocks(pool.blocks, pool.size_gb, block_bytes))},
        )

    @property
    def generated_tokens(self) -> int:
        """Return the tokens of a block of generated traffic."""
        return self.model.block_tokens or MOONCAKE.block_tokens

    def read_trace(self) -> Trace | None:
        """Return the named trace; None if none is named. Raises TraceError."""
        return self.workload.read(self.workload.seed, self.model.block_tokens)


def _blocks(blocks: int | None, size_gb: float, block_bytes: float) -> int:
    return int(size_gb * GB / block_bytes) if blocks is None else blocks


def is_played(key: Key) -> bool:
    """Return whether the emulator uses a key; files may have others, for the simulator."""
    return key.own_variable or key.path not in {other.path for other in keys_of(Scenario)}


def without_effect(file: Path) -> list[str]:
    """Return the keys of a file that the emulator does not use, such as prices and costs that it measures."""
    keys = {key.path: key for key in keys_of(Scenario)}
    given = [path for path in read_values(file) if path[1:] and not is_played(keys[path])]
    refused = {rule.key for rule in PLAYED}
    return [".".join(path) for path in given if ".".join(path) not in refused]


_SOURCE = Source(read_values, completed, is_played)


def read_run(kind: type[AnyOptions], arguments: Sequence[str], program: str, description: str) -> AnyOptions:
    """Return the options of a command like `make run` on this machine; raises OptionError."""
    options = read(kind, arguments, program, description, _SOURCE)
    if options.emulation.servers:
        raise OptionError(f"SERVERS: {program} plays on this machine: leave it out, or use make run")
    return options


def parse_options(arguments: Sequence[str], program: str, description: str) -> RunOptions:
    """Return the options of `make run`, which may also name servers; raises OptionError."""
    return read(RunOptions, arguments, program, description, _SOURCE)
