// What becomes of a packet after ingress and egress: drop, unicast, multicast, and which of them wins.
#define HAS_EGRESS
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 0) {
            mark_to_drop(sm);
        } else if (hdr.h.op == 1) {
            mark_to_drop(sm);
            sm.egress_spec = 2;  // undrops
        } else if (hdr.h.op == 2) {
            sm.mcast_grp = 9;
            mark_to_drop(sm);  // takes the group back
        } else if (hdr.h.op == 3) {
            mark_to_drop(sm);
            sm.mcast_grp = 9;  // the group wins over the drop
        } else if (hdr.h.op == 4) {
            sm.mcast_grp = 9;
            sm.egress_spec = 2;
        } else if (hdr.h.op == 5) {
            sm.mcast_grp = 99;  // nobody is in it
        } else if (hdr.h.op == 6) {
            sm.egress_spec = 511;
        } else if (hdr.h.op == 7) {
            sm.egress_spec = 3;
        } else if (hdr.h.op == 8) {
            sm.egress_spec = 0;
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.a = (bit<32>) sm.egress_port;
        hdr.h.b = (bit<32>) sm.egress_rid;
        hdr.h.r = (bit<64>) sm.instance_type;
        if (sm.egress_port == 3) {
            mark_to_drop(sm);
        }
        if (hdr.h.op == 9) {
            sm.egress_spec = 2;  // too late: egress_port decides
        }
    }
}

#include "../harness/main.p4"
