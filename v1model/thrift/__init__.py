"""BMv2's Thrift services for p4-utils and simple_switch_CLI: `--thrift-port` of weir-switch."""
