// Clones: from ingress as the packet came in, from egress as it leaves; metadata survives by field list.
#define HAS_EGRESS
#define METADATA @field_list(1) bit<8> kept; bit<8> lost; @field_list(1, 2) bit<16> both;
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        meta.kept = 0x11;
        meta.lost = 0x22;
        meta.both = 0x3344;
        if (hdr.h.op == 0) {
            clone(CloneType.I2E, 5);
        } else if (hdr.h.op == 1) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
            meta.kept = 0x99;  // a field list is read when ingress ends
        } else if (hdr.h.op == 2) {
            clone_preserving_field_list(CloneType.I2E, 5, 2);
            mark_to_drop(sm);
        } else if (hdr.h.op == 3) {
            clone(CloneType.I2E, 77);  // no such session
        } else if (hdr.h.op == 6) {
            clone(CloneType.I2E, 6);
        }
        hdr.h.a = 0xAAAAAAAA;
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == 0) {
            if (hdr.h.op == 4) {
                clone(CloneType.E2E, 5);
            } else if (hdr.h.op == 5) {
                clone_preserving_field_list(CloneType.E2E, 5, 1);
                mark_to_drop(sm);
            }
        }
        hdr.h.b = meta.kept ++ meta.lost ++ meta.both;
        hdr.h.r[63:32] = sm.instance_type;
        hdr.h.r[8:0] = sm.egress_port;
    }
}

#include "../harness/main.p4"
