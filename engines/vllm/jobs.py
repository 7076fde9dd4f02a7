"""Messages between vLLM's scheduler and its workers in each step, pickled between processes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class BlockRun:
    """Neighbouring blocks of one request. Its size depends on their number alone, not on the prompt's."""

    request_id: str
    keys: list[bytes]
    """Keys of the run's blocks, the same on every rank. Empty if nothing can be loaded: all its blocks fail.
    """
    parent: bytes | None
    """Key of the block before the run; None if the run begins the prompt."""
    first: int
    """Number of the run's first block in the request."""
    block_ids: list[int]
    """Ids of vLLM's blocks for the run, the same on every rank."""
    adapter: tuple[int, str] | None = None
    """vLLM's number of the request's adapter, and the name of its content that the keys are made with."""

    def part(self, start: int, end: int) -> BlockRun:
        """Return the run's blocks from number `start` of the run to before `end`."""
        parent = self.keys[start - 1] if start else self.parent
        ids = self.block_ids[start:end]
        return replace(
            self, keys=self.keys[start:end], parent=parent, first=self.first + start, block_ids=ids
        )


@dataclass(slots=True)
class Jobs:
    """Work for one step, from the scheduler to its workers."""

    step: int
    """Number of the step, counted from 1."""
    loads: list[BlockRun] = field(default_factory=list)
    stores: list[BlockRun] = field(default_factory=list)
    given: list[int] = field(default_factory=list)
    """Ids of blocks that the engine has given to requests since the step before, which overwrite them."""
    is_sure: bool = False
    """Whether nothing that the step computes on can turn out to be wrong: its blocks are sent at once."""
    settled: int = 0
    """Last step of which the scheduler knows whether its blocks are right."""
    dropped: tuple[int, ...] = ()
    """Steps, newly settled, whose blocks may be wrong."""
    drops_waiting: bool = False
    """Whether nothing may be stored of what earlier steps computed and still waits: the engine's weights may
    have changed since, and its KV memory, as when it slept."""
    voids: list[str] = field(default_factory=list)
    """Requests for which nothing may be loaded of what earlier steps asked for: it is of former weights."""
    generation: int = 0
    """Number of the generation of the engine's weights that all keys are of."""
    wrong: set[int] = field(default_factory=set)
    """Ids of blocks with wrong KV that requests compute on in this step: they count as not loaded."""
    reported: int = 0
    """Last step of which the scheduler has a report."""
    lost: dict[int, list[BlockRun]] = field(default_factory=dict)
    """Steps that never came back, as after an error in one, with what each was to load in the background."""
    computes: bool = True
    """Whether the step computes anything; where it doesn't, waiting for a load costs nobody anything."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Neighbouring blocks of a request that were to be stored, and are not."""

    request_id: str
    first: int
    """Number of the first of these blocks in the request."""
    keys: list[bytes]


@dataclass(slots=True)
class Report:
    """Results of one step, from the workers to their scheduler."""

    step: int
    refusals: list[Refusal] = field(default_factory=list)
    """Refusals since the report before."""
    stored: dict[int, list[bytes]] = field(default_factory=dict)
    """Keys of blocks of which a worker, by its rank, has stored its part since the report before."""
    left_generation: int = -1
    """Number of the generation in which a worker's KV may be wrong, because it has other weights or a step
    raised an error; -1 if there is none."""

    def merged(self, other: Report) -> Report:
        """Return the report of both workers."""
        left = max(self.left_generation, other.left_generation)
        stored = self.stored | other.stored
        return Report(min(self.step, other.step), self.refusals + other.refusals, stored, left)
