"""What vLLM's scheduler tells its workers each step: blocks to load and blocks to store."""

from __future__ import annotations

from dataclasses import dataclass, field

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorMetadata


@dataclass(frozen=True)
class BlockRun:
    """Neighbouring blocks of one request."""

    request_id: str
    keys: list[bytes]
    """Of the request's blocks from its first one on, up to the last of the run."""
    first: int
    """Number of the run's first block in the request."""
    block_ids: list[int]
    """Where vLLM has the blocks that `keys` name, the same on every rank."""

    @property
    def own_ids(self) -> list[int]:
        """Of the run alone."""
        return self.block_ids[self.first :]


@dataclass
class Jobs(KVConnectorMetadata):  # type: ignore[misc] # vllm is not in the project's environment
    """Of one step."""

    loads: list[BlockRun] = field(default_factory=list)
    stores: list[BlockRun] = field(default_factory=list)
    failures_seen: int = 0
    """Reports of blocks that could not be loaded which the scheduler has acted on so far."""
    computes: bool = True
    """Whether the step computes anything; where it doesn't, waiting for a load costs nobody anything."""
