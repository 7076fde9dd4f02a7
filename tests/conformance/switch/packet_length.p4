// packet_length in egress: what setValid, lists of fields and lookahead make of it, and copies don't.
#include <core.p4>
#include <v1model.p4>

header numbers_t {
    bit<8>  op;
    bit<16> length;
}

header x_t {
    bit<8> a;
    bit<8> b;
}

header y_t {
    bit<32> a;
}

header_union either_t {
    x_t x;
    y_t y;
}

struct pair_t {
    x_t    first;
    bit<8> second;
}

struct headers_t {
    numbers_t h;
    x_t       ahead;
    x_t       x;
    x_t[2]    s;
    either_t  u;
}

struct metadata_t {
    pair_t kept;
}

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.op) {
            0x20: ahead;
            0x21: local;
            default: accept;
        }
    }
    state ahead {
        hdr.ahead = packet.lookahead<x_t>();
        transition accept;
    }
    state local {
        x_t next = packet.lookahead<x_t>();
        hdr.ahead = next;
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

x_t twice(in bit<8> value) {
    x_t result = { value, value };
    return result;
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.h.op == 1) {
            hdr.x = { 1, 2 };
        } else if (hdr.h.op == 2) {
            hdr.x.setValid();
            hdr.x = { 1, 2 };
        } else if (hdr.h.op == 3) {
            hdr.x = { 1, 2 };
            hdr.s[1] = hdr.x;
        } else if (hdr.h.op == 4) {
            meta.kept = { { 3, 4 }, 5 };
            hdr.x = meta.kept.first;
        } else if (hdr.h.op == 5) {
            hdr.u.y = { 7 };
        } else if (hdr.h.op == 6) {
            hdr.x = twice(9);
        } else if (hdr.h.op == 7) {
            hdr.x = { b = 2, ... };
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.length = (bit<16>) sm.packet_length;
    }
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(TestParser(), NoChecksum(), TestIngress(), TestEgress(), NoChecksum(), TestDeparser()) main;
