// Keys that are expressions: slices, masks, sums, casts, validity, with names of their own.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action found(bit<64> value) {
        hdr.h.r = value;
    }
    table t {
        key = {
            hdr.h.a[15:8]: exact @name("high");
            hdr.h.a & 0x0000000F: exact @name("low");
            hdr.h.b + 1: exact @name("sum");
            (bit<4>) hdr.h.op: ternary @name("operation");
            hdr.h.isValid(): exact @name("valid");
            sm.ingress_port: ternary;
        }
        actions = { found; NoAction; }
        default_action = NoAction();
    }
    apply {
        t.apply();
    }
}

#include "../harness/main.p4"
