"""Entries, members, groups and nodes by BMv2's handles, which hold for all sessions of a switch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.v1model.remote.shell import Shell
from v1model.dataplane import DataPlaneError, TableEntry
from v1model.ir import ActionCall, KeyMatch
from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.remote.data_plane import running_program


def test_entries_by_handle(shell: Shell) -> None:
    assert shell("table_add route to 10.0.1.0/24 => 3 00:00:00:00:01:02") == [
        "Entry has been added with handle 0"
    ]
    shell("table_add route drop 10.0.2.0/24 =>")
    assert shell("table_dump route") == [
        "0: hdr.ip.dst: 0xa000100/24 => In.to(0x3, 0x102)",
        "1: hdr.ip.dst: 0xa000200/24 => In.drop()",
        "default => In.drop()",
    ]
    shell("table_modify route drop 0", "table_delete route 1")
    assert shell("table_dump route", "table_num_entries route") == [
        "0: hdr.ip.dst: 0xa000100/24 => In.drop()",
        "default => In.drop()",
        "1",
    ]


def test_another_session_finds_the_entries(shell: Shell, address: str) -> None:
    shell("table_add route drop 10.9.0.0/16")
    other = Shell(address)
    assert other("table_dump route") == ["0: hdr.ip.dst: 0xa090000/16 => In.drop()", "default => In.drop()"]
    other.session.close()


def once(address: str, *lines: str) -> list[str]:
    """Return the answers of a session that ends after these lines, as each call of a script does."""
    shell = Shell(address)
    try:
        return shell(*lines)
    finally:
        shell.close()


def test_handles_hold_in_other_sessions(shell: Shell, address: str) -> None:
    once(address, *(f"table_add route drop 10.{number}.0.0/16" for number in range(3)))
    once(address, "table_delete route 0")
    once(address, "table_delete route 1")
    assert shell("table_dump route") == ["2: hdr.ip.dst: 0xa020000/16 => In.drop()", "default => In.drop()"]
    assert once(address, "table_add route drop 10.7.0.0/16") == ["Entry has been added with handle 0"]


def test_a_table_is_read_in_parts(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """All entries of a large one don't fit a message."""
    monkeypatch.setattr("v1model.remote.handles.ENTRIES_AT_ONCE", 2)
    shell(*(f"table_add route drop 10.{number}.0.0/16" for number in range(5)), "table_delete route 2")
    assert [line[0] for line in shell("table_dump route")] == ["0", "1", "3", "4", "d"]


def test_what_others_change_is_seen(shell: Shell, address: str) -> None:
    assert shell("table_num_entries route") == ["0"]
    once(address, "table_add route drop 10.1.0.0/16", "table_add route drop 10.2.0.0/16")
    once(address, "table_modify route to 0 => 3 00:00:00:00:00:07")
    assert shell("table_dump route", "table_num_entries route") == [
        "0: hdr.ip.dst: 0xa010000/16 => In.to(0x3, 0x7)",
        "1: hdr.ip.dst: 0xa020000/16 => In.drop()",
        "default => In.drop()",
        "2",
    ]
    once(address, "table_delete route 0")
    with pytest.raises(ValueError, match="no entry with handle 0"):
        shell("table_modify route drop 0")


def test_who_is_not_the_primary_sees_the_same_handles(shell: Shell, address: str) -> None:
    shell("table_add route drop 10.1.0.0/16", "table_add route drop 10.2.0.0/16", "table_delete route 0")
    assert once(address, "table_dump route") == [
        "1: hdr.ip.dst: 0xa020000/16 => In.drop()",
        "default => In.drop()",
    ]


def test_entries_that_bring_their_action_sets_are_shown(shell: Shell) -> None:
    """Their groups have ids of the switch's own, beyond those that fit BMv2's handles."""
    _, schema = running_program(shell.session, None)
    table = schema.tables_by_name["In.balance"]
    for number in range(3):
        entity = p4runtime_pb2.Entity()
        table.encode_key(TableEntry("In.balance", (None, KeyMatch(number)), None), entity.table_entry)
        chosen = entity.table_entry.action.action_profile_action_set.action_profile_actions.add(weight=1)
        table.encode_action(ActionCall("In.drop", ()), chosen.action)
        shell.session.write(p4runtime_pb2.Update.INSERT, entity)
    assert shell("table_dump balance") == [
        *(f"{number}: hdr.ip.dst: {number:#x} => an action set" for number in range(3)),
        "default => NoAction()",
    ]
    assert shell("table_clear balance", "table_dump balance") == ["default => NoAction()"]


def test_members_groups_and_their_entries(shell: Shell, address: str) -> None:
    assert shell(
        "act_prof_create_member paths to 1 00:00:00:00:00:01",
        "act_prof_create_member paths to 2 0",
        "act_prof_create_group paths",
    ) == [
        "Member has been created with handle 0",
        "Member has been created with handle 1",
        "Group has been created with handle 0",
    ]
    shell("act_prof_add_member_to_group paths 0 0", "act_prof_add_member_to_group paths 1 0")
    shell("act_prof_modify_member paths drop 1")
    other = Shell(address)
    assert other("act_prof_dump paths") == [
        "member 0: In.to(0x1, 0x1)",
        "member 1: In.drop()",
        "group 0: members 0, 1",
    ]
    other.session.close()
    shell("table_indirect_add balance 10.0.0.1 => 1", "table_indirect_add_with_group balance 10.0.0.2 => 0")
    assert shell("table_dump balance") == [
        "0: hdr.ip.dst: 0xa000001 => member 1",
        "1: hdr.ip.dst: 0xa000002 => group 0",
        "default => NoAction()",
    ]
    shell("table_indirect_delete balance 0", "table_indirect_delete balance 1")
    shell("act_prof_remove_member_from_group paths 1 0", "act_prof_add_member_to_group paths 1 0 3")
    assert shell("act_prof_dump_group paths 0", "act_prof_dump_member paths 1") == [
        "group 0: members 0, 1 (weight 3)",
        "member 1: In.drop()",
    ]
    shell("act_prof_remove_member_from_group paths 1 0", "act_prof_delete_member paths 1")
    assert shell("act_prof_dump paths") == ["member 0: In.to(0x1, 0x1)", "group 0: members 0"]
    shell("act_prof_delete_group paths 0", "act_prof_delete_member paths 0")
    assert shell("act_prof_dump paths", "table_dump balance") == ["default => NoAction()"]


def test_a_group_keeps_its_watched_ports(shell: Shell) -> None:
    """Adding a member to a group took them off the others."""
    shell(
        "act_prof_create_member paths drop",
        "act_prof_create_member paths drop",
        "act_prof_create_group paths",
    )
    shell("act_prof_add_member_to_group paths 0 0")
    (group,) = shell.data_plane.groups("In.paths")
    shell.data_plane.modify_group("In.paths", replace(group, watched=((1, 2),)))
    shell("act_prof_add_member_to_group paths 1 0")
    assert shell("act_prof_dump_group paths 0") == ["group 0: members 0 (watches port 2), 1"]
    shell("act_prof_remove_member_from_group paths 0 0", "act_prof_remove_member_from_group paths 1 0")
    shell("act_prof_delete_group paths 0", "act_prof_delete_member paths 0", "act_prof_delete_member paths 1")


def test_one_entry_is_shown(shell: Shell) -> None:
    shell("table_add route drop 10.0.2.0/24", "table_add acl drop 0&&&0 0->5 => 7")
    assert shell("table_dump_entry route 0") == ["0: hdr.ip.dst: 0xa000200/24 => In.drop()"]
    assert shell("table_dump_entry_from_key route 10.0.2.0/24") == shell("table_dump_entry route 0")
    assert shell("table_dump_entry_from_key acl 0&&&0 0->5 7") == shell("table_dump acl")[:1]
    with pytest.raises(ValueError, match="no such entry"):
        shell("table_dump_entry_from_key route 10.0.3.0/24")


def test_an_entry_s_timeout(shell: Shell) -> None:
    shell("table_add route drop 10.0.2.0/24", "table_set_timeout route 0 5000")
    shell("table_modify route to 0 => 3 00:00:00:00:00:07")
    entity = p4runtime_pb2.Entity()
    entity.table_entry.table_id = shell.table_id("In.route")
    (read,) = [one.table_entry for one in shell.session.read(entity)]
    assert read.idle_timeout_ns == 5_000_000_000


def test_direct_counters_and_meters_go_by_handles(shell: Shell) -> None:
    shell("table_add route drop 10.0.2.0/24", "counter_write hits 0 5 500")
    assert shell("counter_read hits 0") == ["In.hits[0] = 5 packets, 500 bytes"]
    assert shell("counter_reset hits", "counter_read hits 0") == ["In.hits[0] = 0 packets, 0 bytes"]
    assert shell("meter_get_rates pace 0") == ["In.pace[0]: no rates"]
    assert shell("meter_set_rates pace 0 0.5:10 1:20", "meter_get_rates pace 0") == [
        "In.pace[0]: 0.5:10, 1:20"
    ]
    with pytest.raises(ValueError, match="no entry with handle 1"):
        shell("counter_read hits 1")


def test_nodes_are_kept_between_sessions(address: str) -> None:
    """Scripts start the command anew for each line, and use nodes of earlier lines."""
    first = Shell(address)
    first("mc_mgrp_create 77")
    (made,) = first("mc_node_create 3 1 2")
    handle = made.split()[-1]
    first.close()
    other = Shell(address)
    other(f"mc_node_associate 77 {handle}", "mirroring_add_mc 99 77")
    assert "group 77: port 1 (rid 3), port 2 (rid 3)" in other("mc_dump")
    assert other("mirroring_get 99") == ["session 99: port 1, port 2"]
    other(f"mc_node_update {handle} 4")
    assert other("mirroring_get 99") == ["session 99: port 4"]
    other("mirroring_delete 99", f"mc_node_dissociate 77 {handle}", f"mc_node_destroy {handle}")
    with pytest.raises(DataPlaneError, match="no multicast node"):
        other(f"mc_node_associate 77 {handle}")
    assert other("mc_mgrp_destroy 77", "mc_dump") == []
    other.close()
