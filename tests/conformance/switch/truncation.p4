// truncate() cuts what leaves, headers included, and never lengthens.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 1) {
            truncate(hdr.h.a);
        }
    }
}

#include "../harness/main.p4"
