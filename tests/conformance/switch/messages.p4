// log_msg, assert and assume leave packets alone as long as they hold.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        log_msg("a packet");
        log_msg("operation {} of {}", { hdr.h.op, hdr.h.a });
        assert(hdr.h.isValid());
        assume(hdr.h.op < 200);
        hdr.h.r = 1;
    }
}

#include "../harness/main.p4"
