// Headers with structs, signed numbers and odd widths; a type of its own; constants and typedefs.
#include <core.p4>
#include <v1model.p4>

typedef bit<24> address_t;
type bit<4> tag_t;
const bit<8> LIMIT = 8w16 * 2 + 1;

struct pair_t {
    bit<5> left;
    bit<3> right;
}

header mixed_t {
    pair_t    pair;
    int<16>   temperature;
    tag_t     tag;
    bit<4>    rest;
    address_t address;
}

struct headers_t {
    mixed_t mixed;
}

struct metadata_t {
    tag_t   seen;
    int<16> low;
}

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.mixed);
        meta.seen = hdr.mixed.tag;
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        meta.low = -16s10;
        if (hdr.mixed.temperature < meta.low) {
            hdr.mixed.temperature = meta.low;
        } else if (hdr.mixed.temperature > (int<16>) (bit<16>) LIMIT) {
            hdr.mixed.temperature = hdr.mixed.temperature >> 1;
        }
        hdr.mixed.pair = { hdr.mixed.pair.right ++ 2w0, hdr.mixed.pair.left[2:0] };
        if (meta.seen == (tag_t) 4w9) {
            hdr.mixed.tag = (tag_t) (((bit<4>) meta.seen) + 1);
        }
        hdr.mixed.address[23:16] = LIMIT;
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
