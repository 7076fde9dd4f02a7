"""Scenarios: slices with their past, shares of nodes, configurations of hosts."""

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from commands.errors import OptionError
from emulator.host_configs import INDEX, write_host_configs
from emulator.options import RunOptions, parse_options
from emulator.scenario import LEAD_S, PLAY_S, Scenario, home_links, make_scenario
from hostlib.node.worker import WorkerConfig
from hostlib.peer.index import IndexConfig
from hostlib.process.config import load_config
from hostlib.protocol.homes import home_of
from hostlib.storage.storage import StorageConfig, read_keys, read_preload
from topologies.errors import TopologyError
from topologies.registry import TOPOLOGIES
from workload.compression import BlockSizes, CompressionError
from workload.generate import generate, to_line
from workload.trace import TraceError
from workload.trace_files import load_trace

ADAPTIVE = ("--codec", "cachegen", "--level", "adaptive", "--ttft-slo", "4")


def options(*arguments: str) -> RunOptions:
    return parse_options(["--requests", "60", "--hosts", "3", *arguments], "run", "")


def scenario(*arguments: str) -> Scenario:
    return make_scenario(options(*arguments))


def test_every_request_is_served_by_one_node() -> None:
    made = scenario()
    assert Counter(r for share in made.shares.values() for r in share) == Counter(made.trace.requests)
    assert set(made.shares) == {"node1", "node2", "node3"}


def test_the_same_seed_makes_the_same_scenario() -> None:
    assert scenario("--seed", "5").shares == scenario("--seed", "5").shares
    assert scenario("--seed", "5").shares != scenario("--seed", "6").shares


def test_speed_defaults_to_what_plays_the_slice_in_time() -> None:
    made = scenario("--requests", "2000")
    assert made.trace.duration_s == pytest.approx(PLAY_S)
    assert made.scale.speed > 1
    assert made.fabric.link_rate_bit_s("node1") == pytest.approx(40e6 * made.scale.speed)


def test_storage_nodes_may_have_links_of_their_own() -> None:
    usual, made = scenario(), scenario("--store-gbit", "200,50")
    rates = [made.fabric.link_rate_bit_s(store) for store in made.fabric.stores]
    assert rates == pytest.approx([usual.fabric.link_rate_bit_s("store1") * share for share in (1, 0.25)])
    assert made.fabric.link_rate_bit_s("node1") == usual.fabric.link_rate_bit_s("node1")
    addresses = [made.fabric.hosts[store].ipv4 for store in made.fabric.stores]
    links = [(link.store, link.link_bit_s) for link in home_links(made)]
    assert links == list(zip(addresses, (2e11, 5e10), strict=True))
    assert home_links(usual) == ()
    for wrong in ("200", "200,50,25"):
        with pytest.raises(OptionError, match=r"STORE_GBIT=.*: there must be as many rates as storage nodes"):
            scenario("--store-gbit", wrong)
    with pytest.raises(OptionError, match=r"must be from 0\.001"):
        options("--store-gbit", "200,0")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_ports_have_the_queues_that_were_asked_for(topology: str) -> None:
    assert not scenario("--topo", topology).fabric.requests_first
    assert scenario("--topo", topology, "--requests-first", "yes").fabric.requests_first


def test_a_slice_of_a_trace_begins_with_its_past_in_the_stores(tmp_path: Path) -> None:
    whole = generate("chat", seed=2, requests=200)
    file = tmp_path / "trace.jsonl"
    file.write_text("".join(to_line(request) + "\n" for request in whole.requests))
    start_s = whole.requests[100].arrival_s
    made = scenario("--trace", str(file), "--start", str(start_s))
    configs = write_host_configs(made, tmp_path)
    held = {key for name in ("store1", "store2") for key in read_keys(tmp_path / f"{name}.keys")}
    past = [r for r in whole.requests if r.arrival_s < start_s]
    assert held == {key for request in past for key in made.key_space.chain(request.blocks)}
    for name in ("store1", "store2"):
        store = load_config(StorageConfig, configs[name])
        homes = [str(made.fabric.hosts[other].ipv4) for other in made.fabric.stores]
        assert store.preload is not None
        assert all(home_of(key, homes) == store.address for key in read_keys(Path(store.preload)))


def test_workers_read_what_was_written_for_them(tmp_path: Path) -> None:
    made = scenario()
    configs = write_host_configs(made, tmp_path)
    for name, share in made.shares.items():
        worker = load_config(WorkerConfig, configs[name])
        assert [r.blocks for r in worker.load_trace().requests] == [r.blocks for r in share]
        assert len(json.loads(configs[name].read_text())["homes"]) == 2


def test_the_pool_is_as_large_as_its_blocks_need() -> None:
    made = scenario("--pool-blocks", "10")
    assert made.defines == {"POOL_BLOCKS": 10, "POOL_SLOTS": 10 * made.fragments, "VALUE_SIZE": 512}
    assert made.fragments * 512 == made.block_bytes


def test_nodes_are_told_to_blend_and_stores_hold_the_pasts_chunks(tmp_path: Path) -> None:
    held = {}
    for blend in ("no", "yes"):
        made = scenario("--shape", "passages", "--blend", blend, "--blend-share", "0.2")
        paths = write_host_configs(made, tmp_path)
        node = json.loads(paths["node1"].read_text())
        assert (node["blend"], node["blend_share"]) == (blend == "yes", 0.2)
        assert load_trace(node["trace"]).has_chunks
        held[blend] = {line for n in (1, 2) for line in (tmp_path / f"store{n}.keys").read_text().split()}
    chunks = {key for one in made.trace.past for key in made.key_space.chunks(one.chunks) if key is not None}
    assert held["yes"] - held["no"] == {key.hex() for key in chunks}


def test_a_trace_whose_chunk_ids_are_all_null_has_nothing_to_blend(tmp_path: Path) -> None:
    line = {"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [0, 1]}
    trace = tmp_path / "none.jsonl"
    trace.write_text(json.dumps(line | {"chunk_ids": [None, None]}) + "\n")
    with pytest.raises(OptionError, match=r"none\.jsonl does not say which of its blocks are chunks"):
        scenario("--trace", str(trace), "--requests", "1", "--blend", "yes")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--blend", "yes"], "agents seed 1 does not say which of its blocks are chunks .* SHAPE=passages"),
        (["--shape", "passages", "--blend", "yes", "--gate", "never"], "BLEND=yes: blends what is fetched"),
    ],
)
def test_what_cannot_be_blended_is_refused(arguments: list[str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        scenario(*arguments)


def test_a_codec_makes_room_for_more_blocks_in_the_same_memory() -> None:
    plain, coded = (scenario("--model", "llama3-70b", "--codec", codec) for codec in ("none", "cachegen"))
    assert coded.pool_size.slots == plain.pool_size.slots
    assert coded.pool_size.fragments < plain.pool_size.fragments / 4
    assert coded.pool_size.blocks == pytest.approx(4.8 * plain.pool_size.blocks, rel=0.01)
    assert (plain.pool_size.spare_slots, coded.pool_size.spare_slots) == (0, coded.pool_size.slots // 25)
    assert coded.cost.stored_bytes == pytest.approx(coded.cost.block_bytes / 4.8, rel=0.02)
    assert (coded.block_bytes, coded.scale, coded.fabric.link_rate_bit_s("node1")) == (
        plain.block_bytes, plain.scale, plain.fabric.link_rate_bit_s("node1"),
    )  # fmt: skip


def test_hosts_agree_on_the_lengths_of_coded_blocks(tmp_path: Path) -> None:
    made = scenario("--codec", "cachegen", "--level", "2", "--coder", "instant")
    configs = write_host_configs(made, tmp_path)
    worker = load_config(WorkerConfig, configs["node1"])
    held = [block for name in ("store1", "store2") for block in read_preload(tmp_path / f"{name}.keys")]
    assert held
    assert isinstance(worker.sizes, BlockSizes)
    assert all(length == 512 * worker.sizes.fragments(key) for key, length in held)
    assert len({length for _, length in held}) > 1
    assert worker.coding_s == (0.0, 0.0)
    assert worker.cost == made.cost


def test_at_adaptive_levels_stores_hold_each_block_at_each(tmp_path: Path) -> None:
    made = scenario("--model", "llama3-70b", "--speed", "2", *ADAPTIVE)
    configs = write_host_configs(made, tmp_path)
    worker = load_config(WorkerConfig, configs["node1"])
    assert (worker.level, worker.gate, worker.ttft_slo_s) == ("adaptive", False, 4.0)
    assert [rung.level for rung in worker.rungs] == [1, 3, 5]
    assert worker.rungs[0].decode_s > worker.rungs[2].decode_s > 0
    assert made.target_s == 2.0
    members = worker.members
    held = dict(block for name in ("store1", "store2") for block in read_preload(tmp_path / f"{name}.keys"))
    past = {key for request in made.trace.past for key in made.key_space.chain(request.blocks)}
    assert held == {stored: 512 * fragments for key in past for stored, fragments in worker.sizes.stored(key)}
    for name in ("store1", "store2"):
        own = str(made.fabric.hosts[name].ipv4)
        homes = [members.homes(key)[0].address for key, _ in read_preload(tmp_path / f"{name}.keys")]
        assert set(homes) == {own}
    assert made.pool_size.blocks == pytest.approx(2048 / 0.2144, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--codec", "zstd"], r"zstd at level 3 makes blocks no smaller \(1\.23 times\) .* keeps 1 bytes"),
        (["--codec", "kivi", "--level", "3"], "kivi has no level 3: choose one of 8, 4, 2"),
        (["--level", "3"], "a level needs a codec"),
        (["--codec", "cachegen", "--push", "1"], "PUSH=yes: .*leave out the codec"),
        (["--codec", "cachegen", "--level", "adaptive"], r"LEVEL=adaptive: aims at .* say which \(TTFT_SLO"),
        (
            ["--level", "adaptive", "--ttft-slo", "1"],
            "codec none does not have: choose one of cachegen, kivi",
        ),
        ([*ADAPTIVE, "--gate", "never"], "GATE=never: there is no level to choose"),
        (
            [*ADAPTIVE, "--scheduler", "conductor"],
            "SCHEDULER=conductor: the conductor does not find",
        ),
        (
            ["--codec", "cachegen", "--level", "best"],
            "LEVEL: must be a whole number, or adaptive",
        ),
    ],
)
def test_what_no_codec_can_do_is_refused(arguments: list[str], complaint: str) -> None:
    with pytest.raises((CompressionError, OptionError), match=complaint):
        scenario(*arguments)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--gate", "always"], "HINTS=homes: the emulator has them with GATE=compare"),
        (["--gate", "never"], "HINTS=homes: the emulator has them with GATE=compare"),
        (["--shape", "passages", "--blend", "yes"], "HINTS=homes: the emulator has them with GATE=compare"),
        (["--scheduler", "conductor"], "HINTS=homes: the emulator has them with GATE=compare"),
    ],
)
def test_hints_are_refused_where_nothing_is_asked_first(arguments: list[str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        scenario("--hints", "homes", *arguments)


def test_too_many_hosts_for_the_switch_are_refused() -> None:
    with pytest.raises(TopologyError, match=r"beside 2 storage nodes \(STORES\) 61 nodes \(HOSTS\), not 63"):
        scenario("--hosts", "63")


def test_a_scale_that_is_too_small_names_the_least(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"SCALE=1: a block would be 163,840 .* use SCALE=103 or more"):
        scenario("--scale", "1")
    assert scenario("--scale", "103").pool_size.slots > 3_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [("{}\n", r"trace.jsonl:1: .*no field"), ("", "no requests"), ("[1]\n", ":1: expected a JSON object")],
)
def test_a_bad_trace_is_refused_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        scenario("--trace", str(file))


def test_a_start_after_the_end_is_refused() -> None:
    with pytest.raises(TraceError, match="nothing arrives after 1e\\+06 s"):
        scenario("--start", "1000000")


def test_workers_are_told_their_rules_and_their_links_rate(tmp_path: Path) -> None:
    made = scenario("--tiers", "by-value", "--gate", "always")
    worker = load_config(WorkerConfig, write_host_configs(made, tmp_path)["node1"])
    assert (worker.tiers, worker.gate) == ("by-value", False)
    assert worker.link_bit_s == pytest.approx(made.fabric.link_rate_bit_s("node1"))


def test_nodes_that_fetch_nothing_have_no_gate_to_ask_and_no_conductor(tmp_path: Path) -> None:
    worker = load_config(WorkerConfig, write_host_configs(scenario("--gate", "never"), tmp_path)["node1"])
    assert (worker.fetch, worker.gate) == (False, False)
    with pytest.raises(OptionError, match="SCHEDULER=conductor: the conductor counts on what nodes fetch"):
        scenario("--gate", "never", "--scheduler", "conductor")


def test_with_tenants_nodes_belong_to_them_in_turn_and_stores_know_no_secret(tmp_path: Path) -> None:
    made = scenario("--tenants", "2")
    paths = write_host_configs(made, tmp_path)
    workers = [load_config(WorkerConfig, paths[name]) for name in made.fabric.nodes]
    assert [worker.tenant for worker in workers[:3]] == [1, 2, 1]
    assert len({worker.secret for worker in workers}) == 2
    assert {name: tenant.number for name, tenant in made.tenants.items()} == {
        name: worker.tenant for name, worker in zip(made.fabric.nodes, workers, strict=True)
    }
    for name in made.fabric.stores:
        text = paths[name].read_text()
        assert (tmp_path / f"{name}.keys").read_text() == ""
        assert not any(str(worker.secret) in text for worker in workers)


@pytest.mark.parametrize("other", [("--scheduler", "conductor")])
def test_tenants_are_refused_where_someone_else_would_have_to_know_their_secrets(
    other: tuple[str, ...],
) -> None:
    with pytest.raises(OptionError, match="TENANTS=2: the conductor would have to know"):
        scenario("--tenants", "2", *other)


def test_nodes_that_join_get_requests_when_half_of_these_have_come(tmp_path: Path) -> None:
    made = scenario("--joining", "1", "--push", "1", "--hosts", "3")
    assert made.joining == ("node3",)
    first = made.trace.requests[30]
    assert {request.arrival_s >= first.arrival_s for request in made.shares["node3"]} == {True}
    assert made.joins_s == pytest.approx(first.arrival_s - LEAD_S / made.scale.speed)
    configs = {
        name: load_config(WorkerConfig, write_host_configs(made, tmp_path)[name])
        for name in ("node2", "node3")
    }
    assert configs["node2"].joins_s is None
    assert configs["node3"].joins_s == made.joins_s
    assert scenario().joins_s is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--joining", "3"], "JOINING=3: somebody has to be there first"),
        (
            ["--joining", "1", "--scheduler", "conductor"],
            "SCHEDULER=conductor: it knows of no node",
        ),
    ],
)
def test_who_cannot_join_is_refused(arguments: list[str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        scenario(*arguments)


LENDING = ("--stores", "0")


def test_nodes_that_lend_hold_the_past_between_them_and_know_their_index(tmp_path: Path) -> None:
    made = scenario(*LENDING)
    paths = write_host_configs(made, tmp_path)
    workers = [load_config(WorkerConfig, paths[name]) for name in made.fabric.nodes]
    index = load_config(IndexConfig, paths[INDEX])
    assert set(paths) == {*made.fabric.nodes, INDEX}
    assert {(worker.index, worker.controller) for worker in workers} == {(index.socket, None)}
    assert [worker.address for worker in workers] == index.nodes
    assert {tuple(worker.homes) for worker in workers} == {tuple(index.nodes)}
    assert index.block_fragments == made.fragments
    assert index.link_bit_s == pytest.approx(made.fabric.link_rate_bit_s("node1"))
    held = [read_keys(Path(str(worker.preload))) for worker in workers]
    past = {key for request in made.trace.past for key in made.key_space.chain(request.blocks)}
    assert sorted(itertools.chain(*held)) == sorted(past)
    for number, keys in enumerate(held):
        assert {int.from_bytes(key[:4], "big") % len(held) for key in keys} == {number}


def test_of_what_a_node_lends_the_youngest_comes_last(tmp_path: Path) -> None:
    made = scenario(*LENDING, "--hosts", "2")
    used: dict[bytes, float] = {}
    for request in made.trace.past:
        used |= dict.fromkeys(made.key_space.chain(request.blocks), request.arrival_s)
    write_host_configs(made, tmp_path)
    for name in made.fabric.nodes:
        times = [used[key] for key in read_keys(tmp_path / f"{name}.keys")]
        assert times == sorted(times)


def test_who_joins_later_has_nothing_to_lend_at_the_start(tmp_path: Path) -> None:
    write_host_configs(scenario(*LENDING, "--joining", "1"), tmp_path)
    held = [len(read_keys(tmp_path / f"node{number}.keys")) for number in (1, 2, 3)]
    assert min(held[:2]) > 0
    assert held[2] == 0


def test_where_there_are_stores_nobody_lends(tmp_path: Path) -> None:
    paths = write_host_configs(scenario(), tmp_path)
    worker = load_config(WorkerConfig, paths["node1"])
    assert (worker.index, worker.preload) == (None, None)
    assert INDEX not in paths


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--eviction", "value"], "EVICTION=value: nodes keep nothing for others"),
        (["--placement", "leaf"], "PLACEMENT=leaf: where nodes lend"),
        (["--replicas", "2"], "REPLICAS=2: there are no storage nodes"),
        (["--durable", "1"], "DURABLE=yes: there are no storage nodes"),
        (["--read-ahead", "8"], "READ_AHEAD=8: there are no storage nodes"),
        (["--tenants", "2"], "TENANTS=2: the switch lets nodes that lend"),
        (["--gate", "never"], "GATE=never: nodes that lend would have nobody who asks"),
        (["--hints", "switch"], "HINTS=switch: where nodes lend, an index"),
        (ADAPTIVE, "LEVEL=adaptive: goes with storage nodes"),
        (["--shape", "passages", "--blend", "yes"], "BLEND=yes: nodes that lend are asked for chains"),
        (["--push", "1"], "PUSH=yes: pushes blocks .* to nodes that ask storage nodes"),
        (["--scheduler", "conductor"], "SCHEDULER=conductor: it does not look through"),
    ],
)
def test_what_nodes_that_lend_cannot_do_is_refused(arguments: Sequence[str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        scenario(*LENDING, *arguments)


def test_nodes_lend_where_the_topology_lets_them() -> None:
    assert scenario(*LENDING, "--topo", "leafspine").fabric.answering == ("node1", "node2", "node3")
    with pytest.raises(TopologyError, match="topology fattree: needs at least one storage node"):
        scenario(*LENDING, "--topo", "fattree", "--hosts", "16")
