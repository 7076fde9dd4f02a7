// The hash algorithms, with base and range.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        bit<32> w = 0;
        bit<16> h = 0;
        if (hdr.h.op == 0) {
            hash(w, HashAlgorithm.crc32, 32w0, { hdr.h.a, hdr.h.b }, 64w0x100000000);
        } else if (hdr.h.op == 1) {
            hash(h, HashAlgorithm.crc16, 16w0, { hdr.h.a, hdr.h.b }, 32w0x10000);
        } else if (hdr.h.op == 2) {
            hash(h, HashAlgorithm.csum16, 16w0, { hdr.h.a, hdr.h.b }, 32w0x10000);
        } else if (hdr.h.op == 3) {
            hash(h, HashAlgorithm.xor16, 16w0, { hdr.h.a, hdr.h.b }, 32w0x10000);
        } else if (hdr.h.op == 4) {
            hash(w, HashAlgorithm.identity, 32w0, { hdr.h.a }, 64w0x100000000);
        } else if (hdr.h.op == 5) {
            hash(w, HashAlgorithm.crc32, 32w100, { hdr.h.a, hdr.h.b[7:0], 8w0 }, 32w7);
        } else if (hdr.h.op == 6) {
            hash(w, HashAlgorithm.crc32, 32w100, { hdr.h.a }, 32w1);
        } else {
            hash(h, HashAlgorithm.crc16, 16w0, { hdr.h.a[2:0], hdr.h.b[12:0] }, 32w0x10000);
        }
        hdr.h.r = w ++ 16w0 ++ h;
    }
}

#include "../harness/main.p4"
