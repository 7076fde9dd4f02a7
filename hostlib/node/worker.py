"""The inference worker: plays its share of a trace on an emulated inference node.

    python -m hostlib.node.worker CONFIG.json

See `WorkerConfig` for the file and `hostlib.process.process` for how it is controlled.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.health import HealthOptions
from hostlib.client.pushed import PushedBlocks
from hostlib.model.blending import Blending
from hostlib.model.gate import ANSWERS, HINTS, HOMES
from hostlib.model.tier_rules import DEFAULT_RULE, TierRuleError, make_rule
from hostlib.model.tiers import LocalTiers
from hostlib.model.watched_tiers import WatchedTiers
from hostlib.node.blender import Blender, blend_all
from hostlib.node.client_gate import ClientGate
from hostlib.node.coder import Coder
from hostlib.node.inference import InferenceNode, InferenceOptions, fetch_all, fetch_none
from hostlib.node.request_record import SOURCES
from hostlib.node.routed import RoutedNode
from hostlib.node.streaming import Streaming
from hostlib.peer.lender import Lender
from hostlib.peer.serving import ServingConfig
from hostlib.process.config import HostConfig, check_address, check_positive
from hostlib.process.process import HostProcess, main
from hostlib.protocol.content import block_content
from hostlib.protocol.errors import ConfigError, TransferError
from hostlib.protocol.kv_file import KvFile
from hostlib.protocol.seal import Seal
from hostlib.protocol.tenancy import name_key_of, seal_of
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import TENANT_PUBLIC
from hostlib.storage.storage import read_keys
from hostlib.transport.endpoint import EndpointOptions, UdpEndpoint
from hostlib.transport.shared_endpoint import SharedEndpoint
from hostlib.transport.transport import Transport
from workload.blend import DEFAULT_SHARE
from workload.compression import NONE
from workload.keys import NO_PARENT, KeySpace
from workload.levels import ADAPTIVE

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class WorkerConfig(ServingConfig, HostConfig):
    """The configuration file of a worker."""

    gpu_blocks: int
    dram_blocks: int
    durable: bool = False
    """Whether a block that is put has to be on its homes' disks before it counts as stored."""
    controller: str | None = None
    """Address of the controller, who knows which storage nodes there are; null for none."""
    silence_s: float = HealthOptions().silence_s
    """Seconds for which a home may be silent before it counts as dead."""
    tenant: int = TENANT_PUBLIC
    secret: str | None = None
    """The tenant's, in hexadecimal; none for the public namespace."""
    tiers: str = DEFAULT_RULE
    """Rule by which blocks move between GPU memory and DRAM."""
    gate: bool = False
    """Whether each fetch is compared with computing first; needs `link_bit_s`."""
    hints: str = ANSWERS
    """Source of what the gate knows of homes (hostlib.model.gate.HINTS). Values other than the default need
    `gate`."""
    fetch: bool = True
    """Whether the node asks the network for blocks at all; without, it computes what it does not hold."""
    expects: bool = True
    """Whether the controller is told of blocks that are going to be stored when they begin to be computed."""
    record_blocks: bool = False
    """Whether the record of a request has the times of each block that was fetched for it."""
    push: bool = False
    """Whether the node subscribes to the prefixes that it asks for and takes what is pushed."""
    joins_s: float | None = None
    """With `push`: seconds after the start at which the node joins, and subscribes to the blocks that others
    asked for most. With null, it is there from the start."""
    kv_file: str | None = None
    """File with real KV (`hostlib.protocol.kv_file`), which new blocks hold and fetched ones are compared
    with."""
    ttft_slo_s: float | None = None
    """With level "adaptive": real seconds from a request's arrival in which a stream is to bring it to its
    first token."""
    blend: bool = False
    """Whether chunks behind a request's prefix are fetched by chunk key and blended (workload/blend.py)."""
    blend_share: float = DEFAULT_SHARE
    """Share of the chunks' tokens that is recomputed."""
    router: str | None = None
    """Socket of the router that sends the requests (hostlib.peer.router); null where the trace has them."""
    name: str = ""
    """Name by which the router knows the node."""
    index: str | None = None
    """Socket of the index that says which nodes hold what (hostlib.peer.index), where nodes lend one another
    their memory; `homes` are then the nodes' addresses. Null where storage nodes keep what nodes store."""
    preload: str | None = None
    """With `index`: file with the keys of the blocks that the node's DRAM holds from the start, youngest
    last, one a line in hexadecimal."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.controller is not None:
            check_address("controller", self.controller)
        check_positive(silence_s=self.silence_s)
        for name, is_asked in (("kv_file", self.kv_file is not None), ("push", self.push)):
            if self.codec != NONE and is_asked:
                raise ConfigError(f"{name} takes blocks that are not coded, so codec must be {NONE!r}")
        if self.blend and (self.kv_file is not None or not self.fetch):
            raise ConfigError("blend takes chunks that are made up and fetched: no kv_file, and fetch")
        if self.blend and self.level == ADAPTIVE:
            raise ConfigError(f"blend does not go with level {ADAPTIVE!r}: chunks have one level")
        if not 0 <= self.blend_share <= 1:
            raise ConfigError(f"blend_share must be from 0 to 1, not {self.blend_share!r}")
        if self.gpu_blocks < 0 or self.dram_blocks < 0:
            raise ConfigError("gpu_blocks and dram_blocks must be 0 or more")
        if self.gate and not self.link_bit_s:
            raise ConfigError("link_bit_s must be above 0 for the gate")
        if self.hints not in HINTS:
            raise ConfigError(f"hints must be one of {', '.join(HINTS)}, not {self.hints!r}")
        if self.hints != ANSWERS and (not self.gate or self.blend or self.router is not None):
            raise ConfigError(f"hints {self.hints!r} goes with the gate, and with neither blend nor a router")
        if self.level == ADAPTIVE:
            self._check_stream()
        if self.index is not None:
            self._check_lending()
        elif self.preload is not None:
            raise ConfigError("preload is what a node lends from the start: it needs index")
        self.make_tiers()
        self.seal  # noqa: B018  (a tenant that cannot be is refused here)

    def _check_stream(self) -> None:
        if self.ttft_slo_s is None or self.ttft_slo_s <= 0:
            raise ConfigError(f"ttft_slo_s must be above 0 with level {ADAPTIVE!r}, not {self.ttft_slo_s!r}")
        if not self.link_bit_s:
            raise ConfigError(f"link_bit_s must be above 0 with level {ADAPTIVE!r}")
        if self.gate or not self.fetch or self.router is not None:
            raise ConfigError(
                f"level {ADAPTIVE!r} goes with fetch, with no gate, whose place it takes, and with no router"
            )

    def _check_lending(self) -> None:
        beyond = {
            "fetch false": not self.fetch,
            "push": self.push,
            "blend": self.blend,
            "durable": self.durable,
            "a router": self.router is not None,
            "replicas above 1": self.replicas > 1,
            f"hints {self.hints!r}": self.hints != ANSWERS,
            f"level {ADAPTIVE!r}": self.level == ADAPTIVE,
        }
        refused = [name for name, is_asked in beyond.items() if is_asked]
        if refused:
            raise ConfigError(f"nodes that lend (index) don't go with {', '.join(refused)}")
        if self.address not in self.homes:
            raise ConfigError(f"homes must name this node, {self.address}, too, if it lends (index)")

    @property
    def seal(self) -> Seal:
        """Return the seal of the tenant."""
        return seal_of(self.tenant, self.secret)

    def make_tiers(self) -> LocalTiers[bytes]:
        """Empty tiers under the rule."""
        try:
            rule = make_rule(self.tiers, self.cost.block_prefill_s)
        except TierRuleError as error:
            raise ConfigError(str(error)) from None
        kind = LocalTiers[bytes] if self.index is None and self.router is None else WatchedTiers
        return kind(self.gpu_blocks, self.dram_blocks, rule)


class WorkerProcess(HostProcess):
    """An inference node with its socket and its requests."""

    def __init__(self, config: WorkerConfig) -> None:
        self._requests = config.load_trace().requests
        self._routed: RoutedNode | None = None
        self._joins_s = config.joins_s if config.push else None
        cost, scale = config.cost, config.scale
        self._tiers = config.make_tiers()
        for key in read_keys(Path(config.preload)) if config.preload is not None else ():
            self._tiers.place(key)
        self._endpoint = UdpEndpoint(config.address, EndpointOptions.of_link(config.link_bit_s))
        self._real_kv = None if config.kv_file is None else KvFile(Path(config.kv_file))
        self._coder = Coder(config.sizes, *config.coding_s)
        self._lender: Lender | None = None
        transport: Transport = self._endpoint
        if config.index is not None:
            shared = SharedEndpoint(self._endpoint)
            transport = shared.client
            self._lender = self._lend(config, config.index, shared.answering)
            self._lender.lending.join()  # before the run begins: its first request may ask
        lending = None if self._lender is None else self._lender.lending
        self._pushed = PushedBlocks(config.seal, self._tiers.__contains__, self._tiers.place)
        self._client = Client(
            transport,
            config.members,
            config.seal,
            ClientOptions(
                health=HealthOptions(silence_s=config.silence_s),
                controller=config.controller,
                asks_past_pool=config.hints == HOMES,
            ),
            self._pushed if config.push else None,
        )
        key_space = KeySpace(
            config.model, block_tokens=config.block_tokens, name_key=name_key_of(config.tenant, config.secret)
        )
        self._gate: ClientGate | None = None
        if config.gate:
            asks = config.hints != ANSWERS
            home_s = None if lending is None else lending.wait_s
            self._gate = ClientGate(self._client, cost, scale, config.link_bit_s, self._coder, asks, home_s)
        options = InferenceOptions(
            durable=config.durable,
            replicas=config.replicas,
            expects=config.expects,
            record_blocks=config.record_blocks,
        )
        self._node = InferenceNode(
            self._client,
            self._tiers,
            key_space,
            cost,
            scale,
            self._gate or (fetch_all if config.fetch else fetch_none),
            options,
            self._real_kv,
            self._coder,
            self._streaming(config),
            self._blender(config, key_space) if config.blend else None,
            lending,
        )
        if config.router is not None:
            assert isinstance(self._tiers, WatchedTiers)
            self._routed = RoutedNode(config.router, config.name, self._client, self._tiers)

    def _streaming(self, config: WorkerConfig) -> Streaming | None:
        if config.level != ADAPTIVE or config.ttft_slo_s is None:
            return None
        target_s = config.scale.duration_s(config.ttft_slo_s)
        return Streaming(self._client, self._coder, config.rungs, target_s, config.link_bit_s)

    def _blender(self, config: WorkerConfig, key_space: KeySpace) -> Blender:
        cost, gate = config.cost, self._gate
        blending = Blending(cost, config.blend_share, config.scale.duration_s)
        alone_ms = round(1000 * config.scale.duration_s(cost.prefill_s(cost.block_tokens)))
        opened = blend_all if gate is None else partial(gate.blends, blending)
        return Blender(blending, self._client, self._tiers, key_space, self._coder, opened, alone_ms)

    def _lend(self, config: WorkerConfig, index: str, transport: Transport) -> Lender:
        assert isinstance(self._tiers, WatchedTiers)
        return Lender(
            transport,
            config.address,
            config.members,
            config.link_bit_s,
            index,
            self._tiers,
            config.seal,
            self._real_kv or block_content,
            lambda key: self._coder.stored(key)[0][1],
        )

    async def run(self, start_s: float) -> None:
        """Serve all requests."""
        joining = None
        if self._lender is not None and not self._lender.lending.joined:
            log.warning("no index answers: what this node does not hold is computed")
        if self._joins_s is not None:
            joining = asyncio.create_task(self._join(start_s + self._joins_s))
        try:
            if self._routed is None:
                await self._node.play(self._requests, start_s)
            else:
                await self._routed.play(self._node, start_s)
        finally:
            if joining is not None:
                joining.cancel()

    async def _join(self, at_s: float) -> None:
        """Ask at that time for what is before all first blocks; nobody has it."""
        await asyncio.sleep(at_s - asyncio.get_running_loop().time())
        with suppress(TransferError):
            await self._client.get(BlockRef(NO_PARENT))

    def progress(self) -> dict[str, Any]:
        """Return how far it is."""
        stats = self._node.stats
        return {
            "requests": len(self._requests) if self._routed is None else self._routed.received,
            "arrived": stats.arrived,
            "completed": stats.completed,
            "failed": stats.failed,
            "blocks": self._blocks(),
            "corrupt": self._client.stats.corrupt,
            **({"backlog_ms": self._lender.backlog_ms()} if self._lender else {}),
        }

    def report(self) -> dict[str, Any]:
        """Return all counters."""
        return {
            "requests": len(self._requests) if self._routed is None else self._routed.received,
            "node": asdict(self._node.stats),
            "blocks": self._blocks(),
            "client": asdict(self._client.stats),
            "pushed": asdict(self._pushed.stats),
            "gate": asdict(self._gate.stats) if self._gate else None,
            "lent": self._lender.report() if self._lender else None,
            "coder": asdict(self._coder.stats),
            "tiers": asdict(self._tiers.stats) | {"held": self._tiers.sizes()},
            "endpoint": self._endpoint.stats.report(),
            "get": self._node.get_times.report(),
            "ttft": self._node.first_token_times.report(),
        }

    def result(self) -> dict[str, Any]:
        """Return the counters, one record a request, and the latency of each block that was fetched."""
        return {
            **self.report(),
            "get_ms": [round(1000 * latency_s, 3) for latency_s in self._client.get_latencies_s],
            "records": [record.report() for record in self._node.records],
        }

    def close(self) -> None:
        """Give up what is in flight and close the socket."""
        self._client.close()
        if self._lender is not None:
            self._lender.close()
        self._endpoint.close()

    def _blocks(self) -> dict[str, int]:
        return {source: sum(r.sources[source] for r in self._node.records) for source in SOURCES}


if __name__ == "__main__":
    sys.exit(main(WorkerConfig, WorkerProcess, sys.argv[1:]))
