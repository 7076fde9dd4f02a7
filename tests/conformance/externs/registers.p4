// Registers: read, write, read again in the same pass; values of odd widths.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<64>>(8) wide;
    register<bit<3>>(8) narrow;
    register<int<16>>(2) signed;
    apply {
        bit<64> value;
        bit<3> small;
        int<16> number;
        if (hdr.h.op == 0) {
            wide.write(hdr.h.a, hdr.h.r);
        } else if (hdr.h.op == 1) {
            wide.read(hdr.h.r, hdr.h.a);
        } else if (hdr.h.op == 2) {
            narrow.read(small, hdr.h.a);
            small = small + 1;
            narrow.write(hdr.h.a, small);
            narrow.read(small, hdr.h.a);
            hdr.h.r = (bit<64>) small;
        } else if (hdr.h.op == 3) {
            signed.read(number, 1);
            number = number - 3;
            signed.write(1, number);
            hdr.h.r = (bit<64>) (bit<16>) number;
        } else {
            wide.read(value, 0);
            wide.write(0, value + 1);
            wide.write(0, value + 2);
            wide.read(hdr.h.r, 0);
        }
    }
}

#include "../harness/main.p4"
