// Sub-controls: constructor parameters, two instances with tables of their own, locals of each call.
#include "../harness/shape.p4"

control Scale(inout bit<32> x)(bit<32> factor) {
    bit<32> before;
    action bump(bit<32> by) {
        x = x + by;
    }
    table t {
        key = { x: exact; }
        actions = { bump; NoAction; }
        default_action = NoAction();
        size = 8;
    }
    apply {
        before = x;
        t.apply();
        x = x * factor + before;
    }
}

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Scale(2) twice;
    Scale(10) ten;
    apply {
        twice.apply(hdr.h.a);
        ten.apply(hdr.h.b);
        hdr.h.r = hdr.h.a ++ hdr.h.b;
    }
}

#include "../harness/main.p4"
