// Header unions: at most one member is valid; what is emitted; assigning one to another.
#include <core.p4>
#include <v1model.p4>

header kind_t {
    bit<8> kind;
}

header short_t {
    bit<8> value;
}

header long_t {
    bit<32> value;
}

header_union either_t {
    short_t short;
    long_t  long;
}

struct headers_t {
    kind_t   kind;
    either_t either;
    either_t other;
}

struct metadata_t { }

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind[0:0]) {
            0: parse_short;
            1: parse_long;
        }
    }
    state parse_short {
        packet.extract(hdr.either.short);
        transition accept;
    }
    state parse_long {
        packet.extract(hdr.either.long);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.kind.kind[7:4] == 1) {
            hdr.either.short.setValid();
            hdr.either.short.value = 0x5A;
        } else if (hdr.kind.kind[7:4] == 2) {
            hdr.either.long.setInvalid();
        } else if (hdr.kind.kind[7:4] == 3) {
            if (hdr.either.long.isValid()) {
                hdr.kind.kind = 0xFF;
            }
        } else if (hdr.kind.kind[7:4] == 4) {
            hdr.other.long.setValid();
            hdr.other.long.value = 0x01020304;
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.kind);
        packet.emit(hdr.either);
        packet.emit(hdr.other);
    }
}

V1Switch(TestParser(), NoChecksum(), TestIngress(), TestEgress(), NoChecksum(), TestDeparser()) main;
