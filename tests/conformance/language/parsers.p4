// Sub-parsers, select on several values, masks and ranges, lookahead, advance; parser loops.
#include <core.p4>
#include <v1model.p4>

header kind_t {
    bit<8> kind;
    bit<8> length;
}

header short_t {
    bit<16> value;
}

header long_t {
    bit<32> value;
}

struct headers_t {
    kind_t  kind;
    short_t before;
    short_t inside;
    long_t  after;
    kind_t  trailer;
}

struct metadata_t {
    bit<8> seen;
    bit<8> rounds;
}

parser Inner(packet_in packet, out short_t inside, inout bit<8> seen)(bit<8> mark) {
    state start {
        packet.extract(inside);
        seen = seen + mark;
        transition select(inside.value) {
            0: reject;
            default: accept;
        }
    }
}

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Inner(1) one;
    Inner(16) sixteen;
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind, hdr.kind.length) {
            (1, 0): plain;
            (1, _): skip;
            (2 .. 4, 0x80 &&& 0xF0): first;
            (0x10 &&& 0xF0, 1): second;
            (5, 7): loop;
            (6, default): look;
        }
    }
    state plain {
        packet.extract(hdr.before);
        transition accept;
    }
    state skip {
        packet.advance((bit<32>) hdr.kind.length * 8);
        transition plain;
    }
    state first {
        one.apply(packet, hdr.inside, meta.seen);
        transition tail;
    }
    state second {
        sixteen.apply(packet, hdr.inside, meta.seen);
        transition tail;
    }
    state tail {
        packet.extract(hdr.after);
        transition accept;
    }
    state loop {
        meta.rounds = meta.rounds + 1;
        packet.advance(8);
        transition select(packet.lookahead<bit<8>>()) {
            0xFF: loop;
            default: plain;
        }
    }
    state look {
        kind_t next = packet.lookahead<kind_t>();
        meta.seen = next.length;
        transition select(packet.lookahead<bit<4>>()) {
            0xA: plain;
            default: tail;
        }
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.trailer.setValid();
        hdr.trailer.kind = meta.seen;
        hdr.trailer.length = meta.rounds;
        if (sm.parser_error == error.PacketTooShort) {
            hdr.trailer.kind = 0xE1;
        } else if (sm.parser_error != error.NoError) {
            hdr.trailer.kind = 0xEF;
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(TestParser(), NoChecksum(), TestIngress(), TestEgress(), NoChecksum(), TestDeparser()) main;
