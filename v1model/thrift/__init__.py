"""BMv2's Thrift services as p4-utils and simple_switch_CLI use them: `--thrift-port` of weir-switch."""
