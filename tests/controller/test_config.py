"""The configuration: what is read back is what was written, and errors name the field."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from controller.addressing import Mac
from controller.config import (
    DEFAULT_LIMITS,
    Config,
    Host,
    PoolSize,
    Port,
    Route,
    SwitchConfig,
    Thresholds,
    config_text,
    limits_of_link,
    load_config,
)
from controller.errors import ConfigError


def host(number: int) -> Host:
    return Host(Mac(0x020000000000 + number), IPv4Address(f"10.0.0.{number}"))


SWITCH = SwitchConfig(
    name="s1",
    device_id=1,
    grpc_address="127.0.0.1:9559",
    p4info=Path("/p4/weir.txtpb"),
    device_config=Path("/p4/weir.json"),
    controller=host(200),
    ports=(Port(1, "node", host(1)), Port(2, "store", host(2)), Port(3, "switch")),
    routes=(
        Route(IPv4Network("10.0.0.1/32"), 1, host(1).mac),
        Route(IPv4Network("10.0.0.2/32"), 2, host(2).mac),
    ),
    pool=PoolSize(blocks=16, slots=128, fragments=8),
    stores=(host(2).ipv4,),
)


@pytest.fixture
def content() -> Any:
    """A valid configuration as parsed JSON, to be spoiled."""
    return json.loads(config_text(Config((SWITCH,))))


def load(tmp_path: Path, content: Any) -> Config:
    file = tmp_path / "controller.json"
    file.write_text(json.dumps(content))
    return load_config(file)


def test_what_is_written_is_read_back(tmp_path: Path, content: Any) -> None:
    assert load(tmp_path, content) == Config((SWITCH,))


def test_paths_start_at_the_file_and_stores_are_those_at_the_ports(tmp_path: Path, content: Any) -> None:
    content["switches"][0]["p4info"] = "weir.txtpb"
    del content["switches"][0]["stores"]
    (switch,) = load(tmp_path, content).switches
    assert switch.p4info == tmp_path / "weir.txtpb"
    assert switch.stores == (host(2).ipv4,)


def test_the_port_to_a_storage_node_is_that_of_the_longest_prefix() -> None:
    wide = Route(IPv4Network("10.0.0.0/8"), 3, host(3).mac)
    routes = (wide, Route(IPv4Network(host(2).ipv4), 2, host(2).mac))
    assert replace(SWITCH, routes=routes).port_to(host(2).ipv4) == 2
    assert replace(SWITCH, routes=routes).port_to(host(9).ipv4) == 3
    assert replace(SWITCH, routes=()).port_to(host(2).ipv4) is None


def test_a_pool_has_as_many_blocks_as_both_entries_and_slots_allow() -> None:
    assert PoolSize(blocks=16, slots=128, fragments=8).whole_blocks == 16
    assert PoolSize(blocks=16, slots=100, fragments=8).whole_blocks == 12


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("switches", [], "switches: there must be at least one"),
        ("switches", {}, "switches: must be a list, not {}"),
        ("switches.0.device_id", 0, "switches[0].device_id: must be from 1 to 2^64-1"),
        ("switches.0.device_id", True, "switches[0].device_id: must be a whole number, not true"),
        ("switches.0.device_id", "1", 'switches[0].device_id: must be a whole number, not "1"'),
        (
            "switches.0.grpc_address",
            "a/b.sock",
            "switches[0].grpc_address: a Unix socket is written unix:a/b",
        ),
        ("switches.0.colour", "red", "switches[0]: no field 'colour': there are name, device_id"),
        ("switches.0.controller.mac", "02:00", "switches[0].controller.mac: '02:00' is not an Ethernet"),
        ("switches.0.controller.ipv4", "10.0.0", "switches[0].controller.ipv4: Expected 4 octets"),
        ("switches.0.ports.0.role", "king", "switches[0].ports[0].role: no role 'king': choose one of node,"),
        ("switches.0.ports.0.port", 64, "switches[0].ports[0].port: the waiters' bitmap has ports 1 to 63"),
        ("switches.0.ports.0.port", 0, "switches[0].ports[0].port: the waiters' bitmap has ports 1 to 63"),
        ("switches.0.ports.0.tenants", [0], "switches[0].ports[0].tenants: a tenant is a number from 1 to"),
        ("switches.0.ports.0.tenants", [7, 7], "switches[0].ports[0].tenants: a tenant is there twice"),
        (
            "switches.0.ports.0.limits",
            {"requests_per_s": 0},
            "switches[0].ports[0].limits.requests_per_s: must be above 0, at most 1000000000, or null",
        ),
        ("switches.0.stores", ["10.0.0.3", "10.0.0.2"], "switches[0].stores: at most 84, each once, in the"),
        ("switches.0.tls", {"key": "k"}, "switches[0].tls: field 'authority' is missing"),
        ("replicas", 4, "replicas: a block has 1 to 3 homes"),
        ("thresholds.tenant_share", 1.5, "thresholds.tenant_share: must be above 0, at most 1"),
        ("switches.0.ports.0.port", 2, "switches[0].ports[0].port: port 2 is there twice"),
        ("switches.0.routes", [], "switches[0].ports[0].host: no route leads to 10.0.0.1"),
        ("switches.0.routes.0.port", 9, "switches[0].routes[0].port: no port 9: there are 1, 2, 3"),
        (
            "switches.0.routes.0.prefix",
            "10.0.0.1/8",
            "switches[0].routes[0].prefix: 10.0.0.1/8 has host bits",
        ),
        ("switches.0.pool.fragments", 0, "switches[0].pool.fragments: must be from 1 to 65535"),
        ("switches.0.pool.slots", 7, "switches[0].pool.slots: 7 slots don't hold one block of 8 fragments"),
        ("thresholds.fill", "later", "thresholds.fill: no 'later': choose one of now, idle, on_the_way"),
        ("thresholds.answer_tries", 0, "thresholds.answer_tries: must be above 0, at most 100"),
        ("thresholds.eviction", "keep", "thresholds.eviction: no 'keep': choose one of value, reclaim, drop"),
        ("costs.model", "gpt", "costs: no model 'gpt': choose one of"),
        ("costs.speed", 0, "costs.speed: must be above 0, at most 1000000"),
        (
            "costs.home_links",
            [{"store": "10.0.0.9", "link_bit_s": 0}],
            "costs.home_links[0].link_bit_s: must be above 0, at most 1000000000000000",
        ),
        (
            "costs.home_links",
            [{"store": "10.0.0.9", "link_bit_s": 1}, {"store": "10.0.0.9", "link_bit_s": 2}],
            "costs.home_links: a storage node is there twice",
        ),
        (
            "costs.home_links",
            [{"store": "10.0.0.77", "link_bit_s": 1}],
            "costs.home_links[0].store: 10.0.0.77 is no switch's storage node",
        ),
        ("pool", 1, "pool: must be true or false, not 1"),
    ],
)
def test_errors_name_file_and_field(
    tmp_path: Path, content: Any, path: str, value: object, complaint: str
) -> None:
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
    place = content
    for part in parents:
        place = place[part]
    place[last] = value
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path / 'controller.json'}: {complaint}")


def test_a_missing_field_is_named(tmp_path: Path, content: Any) -> None:
    del content["switches"][0]["pool"]["slots"]
    with pytest.raises(ConfigError, match=r"switches\[0\]\.pool: field 'slots' is missing"):
        load(tmp_path, content)


def test_two_switches_at_one_address_are_refused(tmp_path: Path, content: Any) -> None:
    content["switches"].append({**content["switches"][0], "name": "s2"})
    with pytest.raises(ConfigError, match="switches: two have the same grpc_address"):
        load(tmp_path, content)


@pytest.mark.parametrize(("blocks", "spare"), [(0, 0), (1, 0), (2, 1), (63, 1), (64, 2), (2048, 16)])
def test_spare_blocks_are_a_small_part_of_the_pool(blocks: int, spare: int) -> None:
    assert Thresholds(eviction="reclaim", reclaims_in_flight=16).spare_blocks(blocks) == spare
    assert Thresholds(eviction="drop").spare_blocks(blocks) == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("", "Expecting value"), ("[]", "must be an object"), ("[" * 100_000, "nested too deeply")],
)
def test_what_is_no_configuration_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "controller.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        load_config(file)


def test_a_file_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "nothing.json")


def test_a_host_may_ask_for_half_more_than_its_link_carries() -> None:
    """40 Mbit/s carry 7,886 values a second."""
    limits = limits_of_link("node", 40e6)
    assert limits is not None
    assert limits.requests_per_s == 11_830
    assert limits.special_per_s == DEFAULT_LIMITS["node"].special_per_s
    assert limits_of_link("switch", 40e6) is None


def test_a_node_may_put_half_of_what_its_link_carries() -> None:
    """40 Mbit/s carry 7,886 values a second; storage nodes put nothing, so they have no rate of their own."""
    node, slow, store = (limits_of_link(*of) for of in (("node", 40e6), ("node", 1e6), ("store", 40e6)))
    assert node is not None
    assert slow is not None
    assert store is not None
    assert (node.puts_per_s, slow.puts_per_s, store.puts_per_s) == (3_943, 1_000, None)
