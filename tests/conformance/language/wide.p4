// Values of hundreds of bits: arithmetic, shifts, comparisons, slices, concatenation.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        bit<300> x = 0;
        bit<300> z = 0;
        bit<300> y = (bit<300>) hdr.h.b;
        bit<280> mid = 0;
        x[281:250] = hdr.h.a;
        z[281:250] = hdr.h.b;
        y = y << 3;
        if (hdr.h.op == 0) {
            x = x + y;
            hdr.h.r = x[63:0] ^ x[299:236];
        } else if (hdr.h.op == 1) {
            x = y - x;
            hdr.h.r = x[299:236];
        } else if (hdr.h.op == 2) {
            hdr.h.r = x > y ? 64w1 : 2;
        } else if (hdr.h.op == 3) {
            mid = (bit<280>) (x >> 200);
            hdr.h.r = mid[279:216] | mid[63:0];
        } else if (hdr.h.op == 4) {
            bit<96> joined = hdr.h.a ++ hdr.h.b ++ hdr.h.a;
            hdr.h.r = joined[79:16];
        } else if (hdr.h.op == 5) {
            int<256> s = (int<256>) (int<32>) hdr.h.a;
            s = s >> 8;
            hdr.h.r = ((bit<256>) s)[255:192];
        } else if (hdr.h.op == 6) {
            y = y * y;
            hdr.h.r = y[63:0];
        } else if (hdr.h.op == 7) {
            x = ~x & y | 5;
            hdr.h.r = x[63:0];
        } else {
            hdr.h.r = x == z ? 64w1 : 0;
        }
    }
}

#include "../harness/main.p4"
