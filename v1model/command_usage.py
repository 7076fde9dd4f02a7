"""Usage of simple_switch_CLI's commands.

[X] is optional, and X... is one or more of X.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = {
    "act_prof_add_member_to_group": "PROFILE MEMBER GROUP [WEIGHT]",
    "act_prof_create_group": "PROFILE",
    "act_prof_create_member": "PROFILE ACTION [PARAMETER...]",
    "act_prof_delete_group": "PROFILE GROUP",
    "act_prof_delete_member": "PROFILE MEMBER",
    "act_prof_dump": "PROFILE",
    "act_prof_dump_group": "PROFILE GROUP",
    "act_prof_dump_member": "PROFILE MEMBER",
    "act_prof_modify_member": "PROFILE ACTION MEMBER [PARAMETER...]",
    "act_prof_remove_member_from_group": "PROFILE MEMBER GROUP",
    "counter_read": "COUNTER INDEX",
    "counter_reset": "COUNTER",
    "counter_write": "COUNTER INDEX PACKETS BYTES",
    "get_time_elapsed": "",
    "get_time_since_epoch": "",
    "load_new_config_file": "FILE",
    "mc_dump": "",
    "mc_mgrp_create": "GROUP",
    "mc_mgrp_destroy": "GROUP",
    "mc_node_associate": "GROUP NODE",
    "mc_node_create": "INSTANCE PORT...",
    "mc_node_destroy": "NODE",
    "mc_node_dissociate": "GROUP NODE",
    "mc_node_update": "NODE PORT...",
    "meter_array_set_rates": "METER RATE:BURST RATE:BURST",
    "meter_get_rates": "METER INDEX",
    "meter_set_rates": "METER INDEX RATE:BURST RATE:BURST",
    "mirroring_add": "SESSION PORT",
    "mirroring_add_mc": "SESSION GROUP",
    "mirroring_delete": "SESSION",
    "mirroring_get": "SESSION",
    "pvs_add": "VALUE_SET VALUE...",
    "pvs_clear": "VALUE_SET",
    "pvs_get": "VALUE_SET",
    "pvs_remove": "VALUE_SET VALUE...",
    "register_read": "REGISTER [INDEX]",
    "register_reset": "REGISTER",
    "register_write": "REGISTER INDEX VALUE",
    "reset_state": "",
    "set_crc16_parameters": "CALCULATION POLYNOMIAL INITIAL FINAL_XOR REFLECT_DATA REFLECT_REMAINDER",
    "set_crc32_parameters": "CALCULATION POLYNOMIAL INITIAL FINAL_XOR REFLECT_DATA REFLECT_REMAINDER",
    "set_queue_depth": "PACKETS [PORT] [PRIORITY]",
    "set_queue_rate": "PACKETS_PER_S [PORT] [PRIORITY]",
    "show_actions": "",
    "show_ports": "",
    "show_pvs": "",
    "show_tables": "",
    "swap_configs": "",
    "switch_info": "",
    "table_add": "TABLE ACTION [MATCH...] [=>] [PARAMETER...] [PRIORITY]",
    "table_clear": "TABLE",
    "table_delete": "TABLE ENTRY",
    "table_dump": "TABLE",
    "table_dump_entry": "TABLE ENTRY",
    "table_dump_entry_from_key": "TABLE [MATCH...] [PRIORITY]",
    "table_dump_group": "PROFILE GROUP",
    "table_dump_member": "PROFILE MEMBER",
    "table_indirect_add": "TABLE [MATCH...] => MEMBER [PRIORITY]",
    "table_indirect_add_member_to_group": "PROFILE MEMBER GROUP [WEIGHT]",
    "table_indirect_add_with_group": "TABLE [MATCH...] => GROUP [PRIORITY]",
    "table_indirect_create_group": "PROFILE",
    "table_indirect_create_member": "PROFILE ACTION [PARAMETER...]",
    "table_indirect_delete": "TABLE ENTRY",
    "table_indirect_delete_group": "PROFILE GROUP",
    "table_indirect_delete_member": "PROFILE MEMBER",
    "table_indirect_modify_member": "PROFILE ACTION MEMBER [PARAMETER...]",
    "table_indirect_remove_member_from_group": "PROFILE MEMBER GROUP",
    "table_indirect_reset_default": "TABLE",
    "table_info": "TABLE",
    "table_modify": "TABLE ACTION ENTRY [=>] [PARAMETER...]",
    "table_num_entries": "TABLE",
    "table_reset_default": "TABLE",
    "table_set_default": "TABLE ACTION [=>] [PARAMETER...]",
    "table_set_timeout": "TABLE ENTRY MILLISECONDS",
    "table_show_actions": "TABLE",
    "write_config_to_file": "FILE",
}


def usage(name: str) -> str:
    """Return a command with its arguments as usage text."""
    return f"{name} {USAGE[name]}".rstrip()


def check_count(name: str, arguments: Sequence[str]) -> None:
    """Raise ValueError with the usage if the number of arguments is wrong."""
    words = USAGE[name].split()
    fewest = sum(not word.startswith("[") for word in words)
    if len(arguments) < fewest or ("..." not in USAGE[name] and len(arguments) > len(words)):
        raise ValueError(f"{name} takes other arguments: {usage(name)}")
