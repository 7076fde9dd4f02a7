// for loops with conditions, with break and continue.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        bit<64> sum = 0;
        if (hdr.h.op == 0) {
            for (bit<32> i = 0; i < hdr.h.a; i = i + 1) {
                if (i == 5) {
                    continue;
                }
                if (i == hdr.h.b) {
                    break;
                }
                sum = sum + (bit<64>) i;
            }
        } else {
            for (bit<32> i = 0, bit<32> j = hdr.h.b; i < j; i = i + 2, j = j - 1) {
                sum = sum + 1;
            }
        }
        hdr.h.r = sum;
    }
}

#include "../harness/main.p4"
