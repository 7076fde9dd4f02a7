"""A remote switch over P4Runtime: as a data plane, and by simple_switch_CLI's commands."""
