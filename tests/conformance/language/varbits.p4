// varbit fields: extract with a length, emit, copy, compare; a length that is too large is an error.
#include <core.p4>
#include <v1model.p4>

header options_t {
    bit<8>       count;
    varbit<64>   data;
}

header status_t {
    bit<8> status;
}

struct headers_t {
    status_t  status;
    options_t first;
    options_t second;
}

struct metadata_t { }

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        bit<8> length = packet.lookahead<bit<8>>();
        // As programs take a header's length: below 4 it wraps around.
        bit<32> bits = length[7:7] == 1 ? ((bit<32>) length[6:0] - 4) * 8 : (bit<32>) length * 8;
        packet.extract(hdr.first, bits);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.status.setValid();
        hdr.status.status = 0;
        if (sm.parser_error == error.HeaderTooShort) {
            hdr.status.status = 0xE4;
        } else if (sm.parser_error == error.ParserInvalidArgument) {
            hdr.status.status = 0xE5;
        } else if (sm.parser_error != error.NoError) {
            hdr.status.status = 0xE1;
        } else if (hdr.first.count != 3) {
            hdr.second = hdr.first;
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.status);
        packet.emit(hdr.first);
        packet.emit(hdr.second);
    }
}

V1Switch(TestParser(), NoChecksum(), TestIngress(), TestEgress(), NoChecksum(), TestDeparser()) main;
