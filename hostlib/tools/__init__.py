"""Tools beside the hosts: a benchmark, a fuzzer, and the wire format as a Scapy layer."""
