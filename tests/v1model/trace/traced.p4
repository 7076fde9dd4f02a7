// One header, one table; packets are sent, dropped, cloned or resubmitted.
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

header h_t { bit<16> a; }
struct headers_t { h_t h; }
struct metadata_t { }

parser Pa(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control No(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action to(bit<9> port) {
        sm.egress_spec = port;
    }
    action drop() {
        mark_to_drop(sm);
    }
    action cloned() {
        clone(CloneType.I2E, 1);
    }
    action again() {
        if (sm.instance_type == 0) {
            resubmit_preserving_field_list(0);
        }
    }
    table route {
        key = { hdr.h.a: lpm; }
        actions = { to; drop; cloned; again; }
        default_action = drop();
    }
    apply {
        route.apply();
    }
}

control Eg(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control De(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Pa(), No(), In(), Eg(), No(), De()) main;
