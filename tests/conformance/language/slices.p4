// Slices to read and to assign, also of parts of parts; concatenation.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.r[15:8] = hdr.h.a[31:24];
        hdr.h.r[3:0] = hdr.h.b[7:4];
        hdr.h.r[63:60] = 4w0xA;
        hdr.h.r[40:40] = 1;
        bit<12> t = hdr.h.a[3:0] ++ 8w0xCD;
        hdr.h.r[59:48] = t;
        t[11:4] = t[7:0];
        hdr.h.b = 20w0 ++ t;
        hdr.h.a = hdr.h.a[15:0] ++ hdr.h.a[31:16];
    }
}

#include "../harness/main.p4"
