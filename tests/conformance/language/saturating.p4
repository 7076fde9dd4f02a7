// |+| and |-| stop at the type's ends, signed and unsigned.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        int<32> sa = (int<32>) hdr.h.a;
        int<32> sb = (int<32>) hdr.h.b;
        bit<4> na = hdr.h.a[3:0];
        bit<4> nb = hdr.h.b[3:0];
        if (hdr.h.op == 0) {
            hdr.h.r = (bit<64>) (hdr.h.a |+| hdr.h.b);
        } else if (hdr.h.op == 1) {
            hdr.h.r = (bit<64>) (hdr.h.a |-| hdr.h.b);
        } else if (hdr.h.op == 2) {
            hdr.h.r = (bit<64>) (bit<32>) (sa |+| sb);
        } else if (hdr.h.op == 3) {
            hdr.h.r = (bit<64>) (bit<32>) (sa |-| sb);
        } else if (hdr.h.op == 4) {
            hdr.h.r = (bit<64>) (na |+| nb);
        } else {
            hdr.h.r = (bit<64>) (na |-| nb);
        }
    }
}

#include "../harness/main.p4"
