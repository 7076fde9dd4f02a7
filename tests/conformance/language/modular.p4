// Sums of run-time values as `int`, cut to a width again: only the bits within it count.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.r[31:0] = (bit<32>) ((int) hdr.h.a * 3 - 1 + (int) hdr.h.b);
        hdr.h.r[63:32] = (bit<32>) ((int) hdr.h.op - (int) hdr.h.a);
    }
}

#include "../harness/main.p4"
