// switch on values and on the action that a table ran; fall through; default; no match.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action one() { }
    action two(bit<32> x) {
        hdr.h.b = x;
    }
    action three() { }
    table t {
        key = { hdr.h.a: exact; }
        actions = { one; two; three; NoAction; }
        const default_action = NoAction();
        const entries = {
            1: one();
            2: two(77);
            3: three();
        }
    }
    apply {
        switch (hdr.h.op) {
            0: { hdr.h.r = 10; }
            1:
            2: { hdr.h.r = 12; }
            200: { }
            default: { hdr.h.r = 99; }
        }
        switch (t.apply().action_run) {
            one: { hdr.h.r = hdr.h.r + 1000; }
            two:
            three: { hdr.h.r = hdr.h.r + 2000; }
        }
    }
}

#include "../harness/main.p4"
