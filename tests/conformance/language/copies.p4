// Copy-in/copy-out: inout arguments that name the same thing, out arguments, early returns.
#include "../harness/shape.p4"

void both(inout bit<32> x, inout bit<32> y) {
    x = x + 1;
    y = y + 16;
}

void make(out bit<32> x, in bit<32> from) {
    x = from + from;
}

bit<32> clamp(in bit<32> x) {
    if (x > 100) {
        return 100;
    }
    return x;
}

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action swap(inout bit<32> x, inout bit<32> y) {
        bit<32> t = x;
        x = y;
        y = t;
    }
    apply {
        bit<32> a = hdr.h.a;
        if (hdr.h.op == 0) {
            both(a, a);  // copied out in order: y last
            hdr.h.r = (bit<64>) a;
        } else if (hdr.h.op == 1) {
            make(a, a);
            hdr.h.r = (bit<64>) a;
        } else if (hdr.h.op == 2) {
            hdr.h.r = (bit<64>) clamp(a);
        } else {
            swap(hdr.h.a, hdr.h.b);
        }
    }
}

#include "../harness/main.p4"
