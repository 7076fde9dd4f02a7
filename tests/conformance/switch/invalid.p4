// Invalid headers: as keys, in checksums, in assignments. What they hold is left over from when they were valid.
#include <core.p4>
#include <v1model.p4>

header command_t {
    bit<8>  op;
    bit<16> sum;
}

header number_t {
    bit<16> value;
}

struct headers_t {
    command_t command;
    number_t  a;
    number_t  b;
    number_t  result;
}

struct metadata_t { }

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.command);
        packet.extract(hdr.a);
        transition select(hdr.command.op) {
            0x80 &&& 0x80: more;
            default: accept;
        }
    }
    state more {
        packet.extract(hdr.b);
        transition accept;
    }
}

control TestVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action set(bit<16> value) {
        hdr.result.setValid();
        hdr.result.value = value;
    }
    table t {
        key = {
            hdr.a.value: exact;
            hdr.b.isValid(): exact;
        }
        actions = { set; }
        const default_action = set(0xEEEE);
        const entries = {
            (0x1111, false): set(1);
            (0x1111, true): set(2);
        }
    }
    apply {
        sm.egress_spec = 1;
        bit<7> op = hdr.command.op[6:0];
        if (op == 0) {
            t.apply();
        } else if (op == 1) {
            hdr.b = hdr.a;
            hdr.a.setInvalid();
        } else if (op == 2) {
            hdr.a.setInvalid();
            hdr.a.value = 0x7777;
            hdr.a.setValid();
        } else if (op == 3) {
            hdr.result = hdr.b;
        } else if (op == 4) {
            hdr.b.setInvalid();
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control TestCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.b.isValid(), { hdr.a.value, hdr.b.value }, hdr.command.sum, HashAlgorithm.csum16);
    }
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.command);
        packet.emit(hdr.a);
        packet.emit(hdr.b);
        packet.emit(hdr.result);
    }
}

V1Switch(TestParser(), TestVerify(), TestIngress(), TestEgress(), TestCompute(), TestDeparser()) main;
