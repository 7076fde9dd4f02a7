"""Configuration of the controller, read from a JSON file (docs/controller.md has an example).

Each class is one JSON object and each of its fields a member of the same name; fields without a default are
required. Errors name the file and the field. (`records.decode` reads the annotations, so they are not
deferred here.)
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Final

from controller.addressing import Mac
from controller.errors import ConfigError
from controller.p4_constants import CPU_PORT, ROLE_REPLY, ROLE_REQUEST, ROLE_TRUNK, WAITER_PORTS
from controller.records import read_json, to_record
from hostlib.protocol.members import MAX_NODES
from hostlib.protocol.wire import MAX_REPLICAS, VALUE_BYTES, VALUE_FRAME_BYTES
from workload.cost import (
    DEFAULT_GPU,
    DEFAULT_LINK_BIT_S,
    DEFAULT_MODEL,
    CostError,
    CostModel,
    make_cost_model,
)

ROLES: Final = {
    "node": ROLE_REQUEST,
    "store": ROLE_REPLY | ROLE_REQUEST,  # stores ask each other for what they missed
    "switch": ROLE_REQUEST | ROLE_REPLY | ROLE_TRUNK,
    "none": 0,
}
"""Roles of a port: each allows the packets that what is behind the port may send."""

ON_THE_WAY: Final = "on_the_way"
FILL_MODES: Final = ("now", "idle", ON_THE_WAY)
MAX_TENANT: Final = 0xFFFF
MAX_RATE_PER_S: Final = 10**9
MAX_LINK_BIT_S: Final = 10**15
LEAF, SPINE, AUTO, EVERYWHERE = PLACEMENTS = ("leaf", "spine", "auto", "everywhere")
"""Placements: which of the switches on a block's way keep it in their pools (`controller.pool.placement`)."""
EVICTION_MODES: Final = ("value", "reclaim", "drop")


@dataclass(frozen=True, slots=True)
class Host:
    """A host or a controller's own address at a switch."""

    mac: Mac
    ipv4: IPv4Address


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest rates at which packets may come from a port, in packets a second; null means no limit. Half a
    second's worth may come at once."""

    requests_per_s: int | None = None
    """GET, STAT and LIST."""
    special_per_s: int | None = None
    """Requests that subscribe to a prefix or have a slot overwritten; they count as requests, too."""
    controller_per_s: int | None = None
    """Packets for the controller and digests that the port's packets cause."""
    puts_per_s: int | None = None
    """PUTs. One that names several homes counts once."""


DEFAULT_LIMITS: Final = {
    "node": Limits(requests_per_s=20_000, special_per_s=1_000, controller_per_s=250, puts_per_s=5_000),
    "store": Limits(requests_per_s=20_000, special_per_s=1_000, controller_per_s=20_000),
    "switch": Limits(controller_per_s=20_000),
}
"""Default limits by role. A switch's ports do not limit requests, because those were counted at the switch
where they came in. A store's limit for the controller is high, because stores acknowledge reclaimed blocks.
20,000 requests a second ask for what a link of 100 Mbit/s carries, and take a third of a storage node's core
if it has none of the blocks. 5,000 PUTs a second of blocks of one fragment take half of that core if they
have to be synced to disk, and a sixth if they only begin blocks."""
REQUESTS_PER_VALUE: Final = 1.5
"""A host may ask for so many times the values that its link carries, where that is known."""
PUTS_PER_VALUE: Final = 0.5
"""A node may put this share of the values that its link carries, where that is known."""
LEAST_PER_S: Final = 1_000
"""Requests a second, and PUTs, that the slowest link allows."""


def limits_of_link(role: str, rate_bit_s: float) -> Limits | None:
    """Return the limits of a port whose link has that rate, or None if those of its role apply.

    More values than the link carries could not come, and nodes compute less than their link carries."""
    usual = DEFAULT_LIMITS.get(role)
    if usual is None or usual.requests_per_s is None:
        return None
    values_per_s = rate_bit_s / (8 * VALUE_FRAME_BYTES)
    puts_per_s = None if usual.puts_per_s is None else _at_least(PUTS_PER_VALUE * values_per_s)
    requests_per_s = _at_least(REQUESTS_PER_VALUE * values_per_s)
    return replace(usual, requests_per_s=requests_per_s, puts_per_s=puts_per_s)


def _at_least(rate_per_s: float) -> int:
    return max(LEAST_PER_S, round(rate_per_s))


@dataclass(frozen=True, slots=True)
class Port:
    """A port of the data plane."""

    port: int
    """Number of the port in the switch."""
    role: str
    """Role of what is behind the port, and so what it may send: one of ROLES."""
    host: Host | None = None
    """The host behind it; none for a link to another switch. It may use no other source address."""
    tenants: tuple[int, ...] = ()
    """Tenants whose blocks it may name, besides the public namespace, 0, that all may."""
    limits: Limits | None = None
    """Limits of the port; by default those of its role."""


@dataclass(frozen=True, slots=True)
class Route:
    """An IPv4 route."""

    prefix: IPv4Network
    """Destinations, as "10.0.0.1/32"."""
    port: int
    """Port to which packets for the host are sent."""
    next_hop: Mac
    """Their Ethernet destination."""


@dataclass(frozen=True, slots=True)
class PoolSize:
    """The memory of one switch's pool, as its P4 program was compiled."""

    blocks: int
    """POOL_BLOCKS: entries of the pool index."""
    slots: int
    """POOL_SLOTS: values of `hostlib.protocol.wire.VALUE_BYTES`."""
    fragments: int
    """Slots that a block takes at most."""
    spare_slots: int = 0
    """Slots that a policy may not count on: where blocks differ in length, free ones lie in pieces."""

    @property
    def defines(self) -> dict[str, int]:
        """Return what the P4 program is compiled with, by name of the macro."""
        return {"POOL_BLOCKS": self.blocks, "POOL_SLOTS": self.slots, "VALUE_SIZE": VALUE_BYTES}

    @property
    def whole_blocks(self) -> int:
        """Blocks that there are both entries and slots for, however long they are."""
        return min(self.blocks, self.slots // self.fragments)

    @property
    def usable_slots(self) -> int:
        """Slots that blocks can lie in."""
        return min(self.slots, self.blocks * self.fragments)

    def capacity(self, spare_blocks: int) -> tuple[int, int]:
        """Return blocks and slots that a policy may fill, with room for so many blocks more."""
        slots = self.usable_slots - self.spare_slots - spare_blocks * self.fragments
        return max(1, self.blocks - spare_blocks), max(1, slots)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """PEM files for P4Runtime over TLS."""

    authority: Path
    """Certificate of the authority that signed the switch's certificate."""
    certificate: Path
    """The controller's own, which the switch asks for."""
    key: Path
    server_name: str
    """Host name in the switch's certificate."""


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """One switch."""

    name: str
    device_id: int
    """P4Runtime's number of the switch, not 0."""
    grpc_address: str
    """Address of its P4Runtime server, such as "127.0.0.1:9559"."""
    p4info: Path
    """P4Info of the program, text format."""
    device_config: Path
    """The program as the engine takes it."""
    controller: Host
    """The controller's own address at this switch: acknowledgements of control operations go there."""
    ports: tuple[Port, ...]
    routes: tuple[Route, ...]
    pool: PoolSize
    stores: tuple[IPv4Address, ...] = ()
    """All storage nodes of the network, ordered by address. Their numbers count from 1 in this order. By
    default they are those at this switch's ports."""

    tls: ClientTls | None = None
    """None: in clear, for sockets that only we can reach."""

    def port_to(self, address: IPv4Address) -> int | None:
        """Return the port of the longest prefix that holds an address, None without a route."""
        matching = [route for route in self.routes if address in route.prefix]
        best = max(matching, key=lambda route: route.prefix.prefixlen, default=None)
        return best.port if best else None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds and rates that bound what the controller does."""

    report_count: int = 2
    """Misses of a block within the sketch's epoch from which the switch reports it."""
    max_digests_per_s: int = 500
    """More than these, and `report_count` is raised for a while. Of blocks that nodes say they will put as
    many are heard of."""
    fill: str = ON_THE_WAY
    """"on_the_way": an admitted block is stored when it next passes; "now": fetched from its home at once;
    "idle": at once if nothing waits there, as far as the home said, otherwise on the way."""
    eviction: str = "value"
    """"reclaim": the switch first sends the block to its home, if that does not hold it; "value": the same,
    for blocks that are worth it; "drop": no block."""
    tenant_share: float = 1.0
    """Part of a pool that one tenant may hold; the public namespace counts as one."""
    reclaims_in_flight: int = 16
    """Blocks being reclaimed at once, if that is no more than a 32nd of the pool."""
    control_fragments_in_flight: int = 128
    """Fragments of fills, and of reclaims, that were asked for and not answered yet."""
    answer_timeout_s: float = 0.2
    """Time for a fragment's answer before it is asked for again."""
    answer_tries: int = 5
    """Times that a fragment is asked for."""

    def spare_blocks(self, whole_blocks: int) -> int:
        """Return the number of blocks that a policy may not count on: newcomers need room during reclaims."""
        if self.eviction == "drop" or whole_blocks < 2:
            return 0
        return min(self.reclaims_in_flight, max(1, whole_blocks // 32))


@dataclass(frozen=True, slots=True)
class HomeLink:
    """The link of a storage node, where it is not as those of most."""

    store: IPv4Address
    link_bit_s: float
    """Link rate at real scale, in bits per second."""


@dataclass(frozen=True, slots=True)
class CostOptions:
    """Costs of computing and moving a block, at real scale."""

    model: str = DEFAULT_MODEL
    """One of workload.cost.MODELS."""
    gpu: str = DEFAULT_GPU
    """One of workload.cost.GPUS."""
    block_tokens: int = 512
    link_bit_s: float = DEFAULT_LINK_BIT_S
    """Rate of a storage node's link in bits per second, except for those in `home_links`."""
    speed: float = 1.0
    """Factor by which the network is faster than real scale (workload/scale.py). Bytes and link rates may be
    smaller by any factor: times are the same."""
    stored_share: float = 1.0
    """Mean part of a block's bytes that hosts send and keep (workload/compression.py)."""
    home_links: tuple[HomeLink, ...] = ()
    """Storage nodes whose link has another rate."""

    def cost_model(self) -> CostModel:
        """Return these options as one object; raises CostError."""
        cost = make_cost_model(self.model, self.gpu, self.block_tokens)
        return replace(cost, stored_share=self.stored_share)


@dataclass(frozen=True, slots=True)
class PushOptions:
    """Conditions and bounds of pushing a prefix to its subscribers."""

    subscribers: int = 2
    """Nodes (or switches) that must have subscribed to the prefix."""
    hits: int = 2
    """Requests for a resident block, since it was last pushed, from which it is pushed."""
    lease_s: float = 60.0
    """Seconds for which a node stays subscribed without asking again."""
    interval_s: float = 0.2
    """Seconds between two pushes of a prefix."""
    max_prefixes: int = 64
    """Prefixes with subscribers at a switch, and so multicast groups; further ones are not pushed."""
    welcome_blocks: int = 64
    """Resident blocks, those asked for most, that are pushed to a node that joins."""


@dataclass(frozen=True, slots=True)
class Config:
    """Whole configuration of a controller."""

    switches: tuple[SwitchConfig, ...]
    policy: str = "reuse"
    """One of controller.policies.POLICY_NAMES."""
    seed: int = 0
    """Seed of the policy's random choices."""
    pool: bool = True
    """False: the switches report and store nothing; what lies in their pools is removed."""
    phantom: bool = False
    """True: the pool is managed, but under keys that nobody asks for (`phantom`), so it serves nothing."""
    placement: str = AUTO
    """Placement: which of the switches on a block's way keep it; one of PLACEMENTS (`placement`)."""
    merging: bool = True
    """Whether requests for a fragment that is in flight are merged."""
    replicas: int = 1
    """Storage nodes that keep a block, as hosts are told: 1 to 3."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    push: PushOptions | None = None
    """None: nothing is pushed."""
    costs: CostOptions = field(default_factory=CostOptions)
    router: str | None = None
    """Unix socket of a router that is told what the pools hold (`residents`)."""


def load_config(path: Path) -> Config:
    """Read and check a configuration; raises ConfigError. Relative paths in it start at its own folder."""
    config = read_json(Config, path)
    for place, reason in _faults(config):
        raise ConfigError(f"{path}: {place}: {reason}")
    return replace(config, switches=tuple(_complete(switch, path.parent) for switch in config.switches))


def config_text(config: Config) -> str:
    """Return the JSON that `load_config` reads back."""
    return json.dumps(to_record(config), indent=1)


def _complete(switch: SwitchConfig, folder: Path) -> SwitchConfig:
    tls = switch.tls and replace(
        switch.tls,
        authority=folder / switch.tls.authority,
        certificate=folder / switch.tls.certificate,
        key=folder / switch.tls.key,
    )
    return replace(
        switch,
        tls=tls,
        p4info=folder / switch.p4info,
        device_config=folder / switch.device_config,
        stores=_stores(switch),
    )


def _stores(switch: SwitchConfig) -> tuple[IPv4Address, ...]:
    """Return a switch's storage nodes as configured, or those at its own ports."""
    return switch.stores or tuple(
        sorted(port.host.ipv4 for port in switch.ports if port.role == "store" and port.host is not None)
    )


def _faults(config: Config) -> Iterator[tuple[str, str]]:
    if not config.switches:
        yield "switches", "there must be at least one"
    for member in ("name", "grpc_address"):
        if len({getattr(switch, member) for switch in config.switches}) < len(config.switches):
            yield "switches", f"two have the same {member}"
    for index, switch in enumerate(config.switches):
        for place, reason in _switch_faults(switch):
            yield f"switches[{index}].{place}", reason
    if config.placement not in PLACEMENTS:
        yield "placement", f"no {config.placement!r}: choose one of {', '.join(PLACEMENTS)}"
    if not 1 <= config.replicas <= MAX_REPLICAS:
        yield "replicas", f"a block has 1 to {MAX_REPLICAS} homes"
    yield from _threshold_faults(config.thresholds)
    yield from _cost_faults(config.costs)
    stores = {store for switch in config.switches for store in _stores(switch)}
    for index, link in enumerate(config.costs.home_links):
        if link.store not in stores:
            yield f"costs.home_links[{index}].store", f"{link.store} is no switch's storage node"
    if config.push is not None:
        yield from _out_of_range(
            "push", config.push, subscribers=64, hits=1_000_000, lease_s=86_400, interval_s=3600,
            max_prefixes=512, welcome_blocks=65_536,
        )  # fmt: skip


def _switch_faults(switch: SwitchConfig) -> Iterator[tuple[str, str]]:
    if "/" in switch.grpc_address and ":" not in switch.grpc_address:
        yield "grpc_address", f"a Unix socket is written unix:{switch.grpc_address}"
    if not 0 < switch.device_id < 1 << 64:
        yield "device_id", "must be from 1 to 2^64-1"
    pool = switch.pool
    for name, most in (("blocks", 1 << 31), ("slots", 1 << 31), ("fragments", 0xFFFF)):
        if not 0 < getattr(pool, name) <= most:
            yield f"pool.{name}", f"must be from 1 to {most}"
    if pool.slots < pool.fragments:
        yield "pool.slots", f"{pool.slots} slots don't hold one block of {pool.fragments} fragments"
    numbers = [port.port for port in switch.ports]
    for index, port in enumerate(switch.ports):
        if port.role not in ROLES:
            yield f"ports[{index}].role", f"no role {port.role!r}: choose one of {', '.join(ROLES)}"
        if not 0 < port.port < WAITER_PORTS:
            yield f"ports[{index}].port", f"the waiters' bitmap has ports 1 to {WAITER_PORTS - 1}"
        if not all(0 < tenant <= MAX_TENANT for tenant in port.tenants):
            yield f"ports[{index}].tenants", f"a tenant is a number from 1 to {MAX_TENANT}"
        elif len(set(port.tenants)) < len(port.tenants):
            yield f"ports[{index}].tenants", "a tenant is there twice"
        for name, rate in asdict(port.limits or Limits()).items():
            if rate is not None and not 0 < rate <= MAX_RATE_PER_S:
                yield f"ports[{index}].limits.{name}", f"must be above 0, at most {MAX_RATE_PER_S}, or null"
        if numbers.count(port.port) > 1:
            yield f"ports[{index}].port", f"port {port.port} is there twice"
        if port.host and not any(port.host.ipv4 in route.prefix for route in switch.routes):
            yield f"ports[{index}].host", f"no route leads to {port.host.ipv4}"
    if sorted(set(switch.stores)) != list(switch.stores) or len(switch.stores) > MAX_NODES:
        yield "stores", f"at most {MAX_NODES}, each once, in the order of their addresses"
    for index, route in enumerate(switch.routes):
        if route.port not in (*numbers, CPU_PORT):
            yield f"routes[{index}].port", f"no port {route.port}: there are {', '.join(map(str, numbers))}"


def _threshold_faults(thresholds: Thresholds) -> Iterator[tuple[str, str]]:
    for name, choices in (("fill", FILL_MODES), ("eviction", EVICTION_MODES)):
        if getattr(thresholds, name) not in choices:
            yield (
                f"thresholds.{name}",
                f"no {getattr(thresholds, name)!r}: choose one of {', '.join(choices)}",
            )
    yield from _out_of_range(
        "thresholds", thresholds, report_count=0x8000, max_digests_per_s=1_000_000, tenant_share=1,
        reclaims_in_flight=4096, control_fragments_in_flight=4096, answer_timeout_s=60, answer_tries=100,
    )  # fmt: skip


def _cost_faults(costs: CostOptions) -> Iterator[tuple[str, str]]:
    try:
        costs.cost_model()
    except CostError as error:
        yield "costs", str(error)
    yield from _out_of_range("costs", costs, block_tokens=1 << 20, link_bit_s=MAX_LINK_BIT_S, speed=1_000_000)
    if len({link.store for link in costs.home_links}) < len(costs.home_links):
        yield "costs.home_links", "a storage node is there twice"
    for index, link in enumerate(costs.home_links):
        yield from _out_of_range(f"costs.home_links[{index}]", link, link_bit_s=MAX_LINK_BIT_S)


def _out_of_range(
    place: str, options: Thresholds | PushOptions | CostOptions | HomeLink, **most: float
) -> Iterator[tuple[str, str]]:
    for name, limit in most.items():
        if not 0 < getattr(options, name) <= limit:  # false for NaN too
            yield f"{place}.{name}", f"must be above 0, at most {limit}"
