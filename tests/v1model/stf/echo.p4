// Port 1 to port 2, with a byte set by a table.
#include <core.p4>
#include <v1model.p4>

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t byte;
}

struct metadata_t { }

parser EchoParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.byte);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control EchoIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    counter(4, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets) hits;
    register<bit<8>>(4) cells;
    action set(bit<8> value) {
        hdr.byte.value = value;
    }
    table bytes {
        key = { hdr.byte.value: ternary; }
        actions = { set; NoAction; }
        default_action = NoAction();
        size = 2;
        counters = hits;
    }
    apply {
        sm.egress_spec = 2;
        if (hdr.byte.value == 0xCE) {
            cells.read(hdr.byte.value, 1);
        }
        bytes.apply();
        seen.count(1);
    }
}

control EchoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control EchoDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.byte);
    }
}

V1Switch(EchoParser(), NoChecksum(), EchoIngress(), EchoEgress(), NoChecksum(), EchoDeparser()) main;
