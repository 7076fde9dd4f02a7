// resubmit and recirculate: once more from the start, with the metadata that the field list keeps.
#define HAS_EGRESS
#define METADATA @field_list(1) bit<8> round; bit<8> lost;
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.b = hdr.h.b + 1;  // a resubmitted packet forgets this
        hdr.h.r[63:56] = meta.round;
        hdr.h.r[55:48] = meta.lost;
        hdr.h.r[31:0] = sm.instance_type;
        if (hdr.h.op == 0 && meta.round < 3) {
            meta.round = meta.round + 1;
            meta.lost = 7;
            resubmit_preserving_field_list(1);
        } else if (hdr.h.op == 1 && meta.round == 0) {
            meta.round = 1;
            resubmit_preserving_field_list(1);
            mark_to_drop(sm);  // the resubmission goes ahead
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 2 && meta.round < 2) {
            meta.round = meta.round + 1;
            meta.lost = 7;
            recirculate_preserving_field_list(1);
        } else if (hdr.h.op == 3 && sm.instance_type == 0) {
            recirculate_preserving_field_list(0);
        }
    }
}

#include "../harness/main.p4"
