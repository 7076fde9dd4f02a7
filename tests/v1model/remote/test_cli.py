"""simple_switch_CLI's commands against the P4Runtime server of a running switch."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tests.v1model.p4runtime.client import P4RuntimeClient
from tests.v1model.remote.shell import Shell
from v1model.dataplane import DataPlaneError
from v1model.remote.device import REFUSED
from v1model.remote.own_calls import OwnCalls
from v1model.thrift.binary import I32, STRING

ROOT = Path(__file__).parents[3]


def test_tables_and_actions_are_listed(shell: Shell) -> None:
    assert shell("show_tables") == [
        f"{'In.route':30} [hdr.ip.dst(lpm)]",
        f"{'In.acl':30} [hdr.ip.src(ternary), hdr.ip.port(range)]",
        f"{'In.balance':30} [hdr.ip.src(selector), hdr.ip.dst(exact)]",
    ]
    assert f"{'In.to':30} [port(9), mac(48)]" in shell("table_info route")


def test_ports_and_drops_are_shown(shell: Shell) -> None:
    """The switch has no interfaces here."""
    assert [line for line in shell("show_ports") if not line.startswith("dropped by the switch")] == []
    counted = shell.data_plane.statistics()
    assert counted["ports"] == {}
    assert counted["drops"]["beyond_mtu"] == 0


@pytest.mark.parametrize("line", ["table_dump oute", "table_add route rop 1.0.0.0/8", "register_read ells 0"])
def test_a_part_of_a_name_is_not_the_name(shell: Shell, line: str) -> None:
    with pytest.raises(ValueError, match="there are: In"):
        shell(line)


def test_priorities_are_bmv2_s(shell: Shell) -> None:
    """The smaller one wins; P4Runtime has it the other way round."""
    shell(
        "table_add acl drop 10.0.0.0&&&255.0.0.0 1024->2047 => 10", "table_add acl drop 0&&&0 0->65535 => 5"
    )
    dumped = shell("table_dump acl")
    assert (
        dumped[0]
        == "0: hdr.ip.src: 0xa000000&&&0xff000000, hdr.ip.port: 0x400->0x7ff, priority 10 => In.drop()"
    )
    assert "priority 5" in dumped[1]


def test_registers_counters_meters(shell: Shell) -> None:
    assert shell("register_write cells 2 77", "register_read cells 2") == ["In.cells[2] = 77"]
    assert shell("register_read cells") == ["In.cells = 0, 0, 77, 0"]
    assert shell("register_reset cells", "register_read cells 2") == ["In.cells[2] = 0"]
    assert shell("counter_write seen 1 5 500", "counter_read seen 1") == ["In.seen[1] = 5 packets, 500 bytes"]
    assert shell("meter_get_rates rate 0") == ["In.rate[0]: no rates"]
    assert shell("meter_set_rates rate 0 0.5:10 1:20", "meter_get_rates rate 0") == [
        "In.rate[0]: 0.5:10, 1:20"
    ]


def test_multicast_and_clones(shell: Shell) -> None:
    shell("mc_mgrp_create 4", "mc_node_create 7 1 2", "mc_node_associate 4 0")
    assert shell("mc_dump") == ["group 4: port 1 (rid 7), port 2 (rid 7)"]
    assert shell("mc_mgrp_destroy 4", "mc_dump") == []
    assert shell("mirroring_add 9 3", "mirroring_get 9") == ["session 9: port 3"]
    shell("mirroring_delete 9")
    with pytest.raises(ValueError, match="no clone session 9"):
        shell("mirroring_get 9")


def test_value_sets(shell: Shell) -> None:
    assert shell("pvs_add known 80", "pvs_add known 0x1bb", "pvs_get known") == ["0x50", "0x1bb"]
    with pytest.raises(DataPlaneError, match="takes 2 members"):
        shell("pvs_add known 53")
    assert shell("pvs_remove known 80", "pvs_get known") == ["0x1bb"]
    assert shell("pvs_clear known", "pvs_get known") == []


def test_queues_are_limited(shell: Shell) -> None:
    """What that does is tested in tests/v1model/switch/test_queues.py."""
    assert (
        shell("set_queue_depth 64", "set_queue_rate 100 1", "set_queue_depth 8 1 7", "set_queue_rate 0") == []
    )
    assert shell.data_plane.statistics()["queues"] == {}


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("set_queue_rate 1 512", "port 512"),
        ("set_queue_depth 1 1 8", "priority 8"),
        ("set_queue_rate x", "x"),
    ],
)
def test_queues_that_do_not_exist(shell: Shell, command: str, word: str) -> None:
    with pytest.raises((ValueError, DataPlaneError), match=word):
        shell(command)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("frobnicate", "unknown command frobnicate"),
        ("table_add nowhere drop 1 =>", "no table nowhere; there are: In.route, In.acl, In.balance"),
        ("table_add route fly 1/32 =>", "no action fly"),
        ("table_add route drop 10.0.0.1", "an lpm match is VALUE/LENGTH"),
        ("register_write cells 0 -1", "-1 is below 0"),
        ("table_add route to 10.0.0.1/24 => 3", "In.to takes 2 parameters \\(port, mac\\)"),
        ("table_add route drop 10.0.0.1 2 =>", "has 1 keys, 2 matches are given"),
        ("table_add route drop 10.0.0.256 =>", "256"),
        ("table_add acl drop 0&&&0 0->1 =>", "need a priority"),
        ("table_delete route 5", "no entry with handle 5"),
        ("table_add acl drop 0&&&0 0->1 => 4 5", "takes 0 parameters.*the last number, 5, is the priority"),
        ("table_add route", r"takes other arguments: table_add TABLE ACTION \[MATCH...\]"),
        ("table_dump route acl", "takes other arguments: table_dump TABLE"),
        ("register_write cells 0 1 2", "takes other arguments: register_write REGISTER INDEX VALUE"),
        ("mirroring_add 1 2 3", "takes other arguments: mirroring_add SESSION PORT"),
        ("meter_set_rates rate 0 1:1", "takes other arguments: meter_set_rates METER INDEX RATE:BURST RATE"),
        ("set_queue_depth 1 2 3 4", "takes other arguments"),
        ("help frobnicate", "unknown command frobnicate"),
        ("register_read nowhere 0", "no register nowhere"),
        ("act_prof_create_member nowhere drop", "no action profile nowhere; there are: In.paths"),
        ("act_prof_dump_member paths 7", "In.paths has no member with handle 7"),
        ("act_prof_add_member_to_group paths 0 7", "In.paths has no group with handle 7"),
        ("table_indirect_add route 10.0.0.1 => 0", "In.route has no action profile"),
        ("table_indirect_add balance 10.0.0.1 =>", "one handle of a member is expected"),
        ("pvs_add known 1 2", "Pa.known has 1 fields, 2 are given"),
        ("pvs_remove known 77", "Pa.known has no such member"),
        ("mirroring_delete 99999999999999999999", "99999999999999999999 is out of range"),
        ("meter_array_set_rates rate inf:1 1:1", "RATE:BURST is expected"),
        ("meter_array_set_rates rate x y", "RATE:BURST is expected"),
        ("mc_mgrp_create one", "'one' is not a number"),
    ],
)
def test_what_cannot_be_done(shell: Shell, line: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        shell(line)


WORDS = [
    "0", "1", "-1", "5", "99999999999999999999", "0x", "1.5", "inf", "nan", "1:2", "1.5:3", "abc", "|", "=>",
    "->", "1&&&", "&&&1", "2->1", "10.0.0.1", "10.0.0.0/33", "00:00:00:00:00:01", "a:b", "/nowhere", "\\x00",
    "é", "route", "acl", "balance", "cells", "seen", "rate", "hits", "pace", "paths", "known", "to", "drop",
    "In.none",
]  # fmt: skip


def test_help_says_what_commands_take(shell: Shell) -> None:
    assert shell("help register_write", "? table_dump swap_configs shell") == [
        "register_write REGISTER INDEX VALUE",
        "table_dump TABLE",
        "swap_configs",
        "shell is not supported: use the shell itself",
    ]


def test_any_words_after_any_command_are_done_or_refused(shell: Shell) -> None:
    random = Random(7)
    commands = sorted(
        {line.split()[0] for line in shell("help")} - {"write_config_to_file", "load_new_config_file"}
    )
    for _ in range(600):
        words = random.choices(WORDS, k=random.randint(0, 6))
        with suppress(DataPlaneError, OSError, ValueError):
            shell(" ".join([random.choice(commands), *words]))
    shell("reset_state")


def test_a_counter_is_reset(shell: Shell) -> None:
    shell("counter_write seen 1 5 500", "counter_write seen 2 6 600", "counter_reset seen")
    assert shell("counter_read seen 1", "counter_read seen 2") == [
        "In.seen[1] = 0 packets, 0 bytes",
        "In.seen[2] = 0 packets, 0 bytes",
    ]


def test_actions_value_sets_and_the_switch_are_shown(shell: Shell) -> None:
    assert f"{'In.to':30} [port(9), mac(48)]" in shell("show_actions")
    (shown,) = shell("show_pvs")
    assert shown.startswith("Pa.known ")
    assert shell("switch_info")[0] == "device_id: 0"
    assert int(shell("get_time_elapsed")[0]) > 0
    assert abs(int(shell("get_time_since_epoch")[0]) / 1e6 - time.time()) < 3600


def test_custom_crcs_are_set(shell: Shell) -> None:
    assert shell("set_crc32_parameters calc 0x04c11db7 0xffffffff 0xffffffff true true") == []
    with pytest.raises(DataPlaneError, match="no calculation other"):
        shell("set_crc32_parameters other 0x04c11db7 0xffffffff 0xffffffff true true")
    with pytest.raises(DataPlaneError, match="calc is crc32_custom"):
        shell("set_crc16_parameters calc 0x1021 0xffff 0 false false")
    with pytest.raises(ValueError, match="more than 16 bits"):
        shell("set_crc16_parameters calc 0x11021 0xffff 0 false false")


def test_the_state_is_reset_and_configs_are_swapped(shell: Shell, tmp_path: Path) -> None:
    shell("table_add route drop 10.0.2.0/24", "register_write cells 1 5", "reset_state")
    assert shell("table_num_entries route", "register_read cells 1") == ["0", "In.cells[1] = 0"]
    shell("table_add route drop 10.0.2.0/24", f"write_config_to_file {tmp_path / 'config.json'}")
    shell(f"load_new_config_file {tmp_path / 'config.json'}", "swap_configs")
    assert shell("table_num_entries route") == ["0"]
    with pytest.raises(DataPlaneError, match="VERIFY_AND_SAVE comes first"):
        shell("swap_configs")
    with pytest.raises(OSError, match="nowhere"):
        shell("load_new_config_file nowhere.json")


@pytest.mark.parametrize("command", sorted(REFUSED))
def test_what_there_is_nothing_for_says_what_to_use(shell: Shell, command: str) -> None:
    with pytest.raises(ValueError, match=f"{command} is not supported: "):
        shell(f"{command} 1 2 3 4 5 6")


def test_calls_of_the_machine_are_not_the_clients(shell: Shell) -> None:
    with pytest.raises(DataPlaneError, match="-i of weir-switch"):
        OwnCalls(shell.session)("standard:bm_dev_mgr_add_port", (STRING, "lo"), (I32, 1), (STRING, ""))


def test_what_the_switch_refuses(shell: Shell, address: str) -> None:
    with pytest.raises(DataPlaneError) as caught:
        shell("register_read cells 4")
    assert caught.value.code == "OUT_OF_RANGE"
    primary = P4RuntimeClient(0, address, (0, 9))
    other = Shell(address)
    try:
        with pytest.raises(DataPlaneError, match="election-id"):
            other("register_write cells 0 1")
        with pytest.raises(DataPlaneError, match="election-id"):
            other("set_queue_rate 1")
        assert other("register_read cells 0") == ["In.cells[0] = 0"]
    finally:
        other.session.close()
        primary.tear_down()


def test_the_command(address: str) -> None:
    command = [sys.executable, "-m", "v1model", "cli", "--address", address]
    script = "# a comment\ntable_add route drop 10.1.0.0/16\nnonsense\ntable_dump route\ntable_clear route\n"
    done = subprocess.run(
        command, cwd=ROOT, input=script, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "Error: unknown command nonsense (line 3: nonsense)\n"
    assert "0: hdr.ip.dst: 0xa010000/16 => In.drop()" in done.stdout
    one = [*command, "-c", "register_read cells 0"]
    done = subprocess.run(one, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "In.cells[0] = 0\n")


def test_nobody_there() -> None:
    command = [sys.executable, "-m", "v1model", "cli", "--address", "127.0.0.1:9", "-c", "show_tables"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("weir-cli: 127.0.0.1:9: UNAVAILABLE")
