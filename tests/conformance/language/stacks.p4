// Header stacks: next, last, lastIndex, run-time index, push and pop, overflow, a stack emitted whole.
#include <core.p4>
#include <v1model.p4>

header command_t {
    bit<8> op;
    bit<8> index;
}

header label_t {
    bit<7>  value;
    bit<1>  bottom;
}

struct headers_t {
    command_t  command;
    label_t[4] labels;
}

struct metadata_t {
    bit<32> last;
}

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.command);
        transition select(hdr.command.op) {
            9: accept;
            default: label;
        }
    }
    state label {
        packet.extract(hdr.labels.next);
        meta.last = hdr.labels.lastIndex;
        transition select(hdr.labels.last.bottom) {
            0: label;
            default: accept;
        }
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        bit<8> index = hdr.command.index;
        if (hdr.command.op == 0) {
            hdr.labels.push_front(1);
            hdr.labels[0].setValid();
            hdr.labels[0].value = 0x7F;
            hdr.labels[0].bottom = 0;
        } else if (hdr.command.op == 1) {
            hdr.labels.pop_front(1);
        } else if (hdr.command.op == 2) {
            hdr.labels.pop_front(3);
        } else if (hdr.command.op == 3) {
            hdr.labels.push_front(2);
        } else if (hdr.command.op == 4) {
            hdr.command.index = (bit<8>) meta.last;
        } else if (hdr.command.op == 5) {
            hdr.labels[1].setInvalid();
        } else if (hdr.command.op == 6) {
            hdr.labels[index[1:0]].value = 0x55;
        } else if (hdr.command.op == 7) {
            hdr.command.index = (bit<8>) hdr.labels[index[1:0]].value;
        } else if (hdr.command.op == 8) {
            label_t[4] copy = hdr.labels;
            copy[0].value = 0x11;
            hdr.labels = copy;
        }
        if (sm.parser_error == error.StackOutOfBounds) {
            hdr.command.index = 0xE2;
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.command);
        packet.emit(hdr.labels);
    }
}

V1Switch(TestParser(), NoChecksum(), TestIngress(), TestEgress(), NoChecksum(), TestDeparser()) main;
