"""Settings of all that serve or route requests: the requests, the model, the storage nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hostlib.model.streamer import Rung
from hostlib.process.config import ProcessConfig, check_address, check_positive
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.members import Members
from hostlib.protocol.wire import VALUE_BYTES, VALUE_FRAME_BYTES, fragment_count
from workload.compression import CPU, NONE, BlockSizes, CompressionError, coding_s
from workload.cost import DEFAULT_GPU, DEFAULT_MODEL, CostError, CostModel, make_cost_model
from workload.levels import Ladder, make_sizes
from workload.scale import DEFAULT_SIGMA, ScaleError, ScaleModel
from workload.trace import MOONCAKE, Trace, TraceError
from workload.trace_files import load_trace


@dataclass(frozen=True, kw_only=True)
class ServingConfig(ProcessConfig):
    """Part of the configuration files of workers and of the router."""

    homes: list[str]
    """Addresses of the storage nodes, the same for all."""
    trace: str
    """Requests, a trace file whose times are already those of the run; it may be empty."""
    replicas: int = 1
    """Homes of each block, as long as no controller says another number."""
    block_tokens: int = MOONCAKE.block_tokens
    model: str = DEFAULT_MODEL
    gpu: str = DEFAULT_GPU
    link_bit_s: float = 0.0
    """Rate of a node's link; 0 for unknown."""
    sigma: float = DEFAULT_SIGMA
    speed: float = 1.0
    codec: str = NONE
    """Codec by which blocks are coded before they are sent (workload/compression.py)."""
    level: int | str | None = None
    """Level of the codec. null: its default; "adaptive": one for each chunk of a chain
    (hostlib.model.streamer)."""
    coder: str = CPU
    """Device that codes blocks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.homes:
            raise ConfigError("homes must name at least one storage node")
        for home in self.homes:
            check_address("homes", home)
        check_positive(block_tokens=self.block_tokens)
        if self.link_bit_s < 0:
            raise ConfigError(f"link_bit_s must be 0 or more, not {self.link_bit_s!r}")
        self.members, self.cost, self.coding_s, self.rungs  # noqa: B018  (a name or number that does not exist is refused here)

    @property
    def members(self) -> Members:
        """Return the storage nodes, as far as the file knows."""
        try:
            return Members.of(self.homes, self.replicas)
        except ValueError as error:
            raise ConfigError(f"homes: {error}") from None

    @property
    def cost(self) -> CostModel:
        """Return the cost model at real scale."""
        return replace(self._plain_cost, stored_share=self.sizes.stored_share)

    @property
    def sizes(self) -> BlockSizes | Ladder:
        """Return the sizes of blocks as they are sent, in the emulation."""
        cost = self._plain_cost
        try:
            return make_sizes(
                self.codec,
                self.level,
                fragment_count(self.scale.block_bytes(cost.block_bytes)),
                cost.model.kv_dtype_bytes,
            )
        except CompressionError as error:
            raise ConfigError(str(error)) from None

    @property
    def coding_s(self) -> tuple[float, float]:
        """Return the seconds to encode and to decode a block in the emulation; of a stream, each rung has its
        own."""
        sizes = self.sizes
        return (0.0, 0.0) if isinstance(sizes, Ladder) else self._coding_s(sizes)

    @property
    def rungs(self) -> list[Rung]:
        """Return what a stream chooses from, in the emulation; none where blocks have one level."""
        sizes = self.sizes
        if not isinstance(sizes, Ladder):
            return []
        rungs = []
        for (_, level), one in zip(sizes.numbers, sizes.levels, strict=True):
            encode_s, decode_s = self._coding_s(one)
            rungs.append(Rung(level, one.mean_fragments * VALUE_FRAME_BYTES, decode_s, encode_s))
        return rungs

    def _coding_s(self, sizes: BlockSizes) -> tuple[float, float]:
        cost = self._plain_cost
        try:
            encode_s, decode_s = coding_s(
                sizes.compression, self.coder, cost.block_bytes / cost.model.kv_dtype_bytes
            )
        except CompressionError as error:
            raise ConfigError(str(error)) from None
        return self.scale.duration_s(encode_s), self.scale.duration_s(decode_s)

    @property
    def _plain_cost(self) -> CostModel:
        try:
            return make_cost_model(self.model, self.gpu, self.block_tokens)
        except CostError as error:
            raise ConfigError(str(error)) from None

    @property
    def scale(self) -> ScaleModel:
        """Return how real bytes and times become those of the run."""
        try:
            return ScaleModel(self.sigma, self.speed, VALUE_BYTES)
        except ScaleError as error:
            raise ConfigError(str(error)) from None

    def load_trace(self) -> Trace:
        """Return the requests."""
        path = Path(self.trace)
        try:
            if path.is_file() and not path.stat().st_size:
                return Trace(str(path), MOONCAKE, ())
            trace = load_trace(path, keeps_times=True)
        except TraceError as error:
            raise ConfigError(str(error)) from None
        if trace.block_tokens != self.block_tokens:
            raise ConfigError(
                f"{path}: blocks of {trace.block_tokens} tokens, but block_tokens is {self.block_tokens}"
            )
        return trace
