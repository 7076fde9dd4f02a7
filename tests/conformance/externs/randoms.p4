// random() stays within its bounds, both included.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        bit<32> value = 0;
        if (hdr.h.op == 0) {
            random(value, 32w7, 32w7);
            hdr.h.r = (bit<64>) value;
        } else {
            random(value, hdr.h.a, hdr.h.b);
            hdr.h.r = value >= hdr.h.a && value <= hdr.h.b ? 64w1 : 0;
        }
    }
}

#include "../harness/main.p4"
