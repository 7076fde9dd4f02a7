// bit<N> and int<N> wrap around; shifts by the width or more give 0 or the sign; comparisons know signs.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        bit<32> a = hdr.h.a;
        bit<32> b = hdr.h.b;
        int<32> sa = (int<32>) a;
        int<32> sb = (int<32>) b;
        bit<8> narrow = a[7:0];
        int<8> small = (int<8>) narrow;
        if (hdr.h.op == 0) {
            hdr.h.r = (bit<64>) (a + b);
        } else if (hdr.h.op == 1) {
            hdr.h.r = (bit<64>) (a - b);
        } else if (hdr.h.op == 2) {
            hdr.h.r = (bit<64>) (a * b);
        } else if (hdr.h.op == 3) {
            hdr.h.r = (bit<64>) (a << b[7:0]);
        } else if (hdr.h.op == 4) {
            hdr.h.r = (bit<64>) (a >> b[7:0]);
        } else if (hdr.h.op == 5) {
            hdr.h.r = (bit<64>) (bit<32>) (sa >> b[7:0]);
        } else if (hdr.h.op == 6) {
            hdr.h.r = (bit<64>) (-a);
        } else if (hdr.h.op == 7) {
            hdr.h.r = (bit<64>) (~a);
        } else if (hdr.h.op == 8) {
            hdr.h.r = (bit<64>) (a ^ (b & 0xFF00FF00) | 1);
        } else if (hdr.h.op == 9) {
            hdr.h.r = a < b ? 64w1 : 0;
        } else if (hdr.h.op == 10) {
            hdr.h.r = sa < sb ? 64w1 : 0;
        } else if (hdr.h.op == 11) {
            hdr.h.r = (bit<64>) (bit<8>) (small + 8s100);
        } else if (hdr.h.op == 12) {
            hdr.h.r = (bit<64>) (bit<16>) (int<16>) small;
        } else if (hdr.h.op == 13) {
            hdr.h.r = (bit<64>) (bit<8>) (small * 8s3);
        } else if (hdr.h.op == 14) {
            hdr.h.r = (bit<64>) (bit<8>) (-small);
        } else if (hdr.h.op == 15) {
            hdr.h.r = (bit<64>) a * (bit<64>) b;
        } else if (hdr.h.op == 16) {
            hdr.h.r = sa >= sb ? 64w1 : 0;
        } else {
            hdr.h.r = (bit<64>) (narrow + 8w255);
        }
    }
}

#include "../harness/main.p4"
