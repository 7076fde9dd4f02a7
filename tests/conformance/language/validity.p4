// Valid and invalid headers: copies carry validity, only valid ones are emitted, keys may ask.
#include <core.p4>
#include <v1model.p4>

header number_t {
    bit<8> value;
}

struct headers_t {
    number_t command;
    number_t a;
    number_t b;
    number_t c;
}

struct metadata_t { }

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.command);
        packet.extract(hdr.a);
        transition select(hdr.command.value) {
            0x80 &&& 0x80: parse_b;
            default: accept;
        }
    }
    state parse_b {
        packet.extract(hdr.b);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action note(bit<8> value) {
        hdr.c.setValid();
        hdr.c.value = value;
    }
    table which {
        key = {
            hdr.a.isValid(): exact;
            hdr.b.isValid(): exact;
        }
        actions = { note; }
        const entries = {
            (true, true): note(0xAB);
            (true, false): note(0xA0);
            (false, true): note(0x0B);
            (false, false): note(0x00);
        }
        default_action = note(0xFF);
    }
    apply {
        sm.egress_spec = 1;
        bit<7> command = hdr.command.value[6:0];
        if (command == 1) {
            hdr.a = hdr.b;
        } else if (command == 2) {
            hdr.b = hdr.a;
        } else if (command == 3) {
            hdr.a.setInvalid();
        } else if (command == 4) {
            hdr.a.setInvalid();
            hdr.a.setValid();
            hdr.a.value = 9;
        } else if (command == 5) {
            hdr.b = { 0x77 };
        } else if (command == 6) {
            hdr.a = (number_t) {#};
        }
        which.apply();
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.command);
        packet.emit(hdr.c);
        packet.emit(hdr.a);
        packet.emit(hdr.b);
    }
}

V1Switch(TestParser(), NoChecksum(), TestIngress(), TestEgress(), NoChecksum(), TestDeparser()) main;
