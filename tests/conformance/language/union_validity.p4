// At most one member of a header union is valid: setInvalid on any member, and an invalid header assigned
// to one, be it by a copy out of a parameter, leave none (spec section 8.20).
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8> op;
}

header short_t {
    bit<8> value;
}

header long_t {
    bit<16> value;
}

header_union either_t {
    short_t short;
    long_t  long;
}

struct headers_t {
    op_t        h;
    either_t    either;
    either_t[2] stack;
}

struct metadata_t { }

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        packet.extract(hdr.either.short);
        transition select(hdr.h.op) {
            0x20 &&& 0xF0: parse_stack;
            0x30: parse_one;
            0x31: parse_both;
            default: accept;
        }
    }
    state parse_one {
        packet.extract(hdr.stack.next.short);
        transition accept;
    }
    state parse_both {
        packet.extract(hdr.stack.next.short);
        packet.extract(hdr.stack.next.long);
        transition invalidate;
    }
    state invalidate {
        hdr.either.long.setInvalid();
        hdr.stack[0].long.setInvalid();
        transition accept;
    }
    state parse_stack {
        packet.extract(hdr.stack.next.short);
        packet.extract(hdr.stack.next.long);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

void leave(inout long_t long) { }

void make(out long_t long) {
    long.setValid();
    long.value = 0x1234;
}

void clear(out long_t long) { }

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        short_t none;
        long_t long;
        either_t other;
        none.setInvalid();
        long.setInvalid();
        other.short.setInvalid();
        bit<8> at = hdr.h.op & 0x01;
        if (hdr.h.op == 0) {
            hdr.either.long.setInvalid();
        } else if (hdr.h.op == 1) {
            hdr.either.long = long;
        } else if (hdr.h.op == 2) {
            hdr.either.long = (long_t) {#};
        } else if (hdr.h.op == 3) {
            hdr.either.long.setValid();
            hdr.either.long.value = 0xBEEF;
        } else if (hdr.h.op == 4) {
            hdr.either = other;
        } else if (hdr.h.op == 5) {
            leave(hdr.either.long);
        } else if (hdr.h.op == 6) {
            make(hdr.either.long);
        } else if (hdr.h.op == 7) {
            clear(hdr.either.long);
        } else if (hdr.h.op == 8) {
            hdr.either.short = none;
            hdr.h.op = hdr.either.isValid() ? 8w0xFF : 0x88;
        } else if (hdr.h.op == 9) {
            hdr.either.long.value = 0x1234;
        } else if (hdr.h.op == 0x20) {
            hdr.stack[at].long.setInvalid();
        } else if (hdr.h.op == 0x21) {
            hdr.stack[at].short = none;
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
        packet.emit(hdr.either);
        packet.emit(hdr.stack);
    }
}

V1Switch(TestParser(), NoChecksum(), TestIngress(), TestEgress(), NoChecksum(), TestDeparser()) main;
