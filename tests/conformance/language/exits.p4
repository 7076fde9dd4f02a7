// exit ends the whole control, return only the one that it stands in; copy-out happens all the same.
#include "../harness/shape.p4"

control Inner(inout bit<64> r, in bit<8> op) {
    action leave() {
        r = r + 5;
        exit;
    }
    table t {
        key = { op: exact; }
        actions = { leave; NoAction; }
        const default_action = NoAction();
        const entries = { 2: leave(); }
    }
    apply {
        r = r + 1;
        if (op == 0) {
            return;
        }
        t.apply();
        if (op == 1) {
            r = r + 10;
            exit;
        }
        r = r + 100;
    }
}

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Inner() inner;
    apply {
        inner.apply(hdr.h.r, hdr.h.op);
        hdr.h.r = hdr.h.r + 0x10000;
        if (hdr.h.op == 4) {
            return;
        }
        hdr.h.a = 0xFFFFFFFF;
    }
}

#include "../harness/main.p4"
