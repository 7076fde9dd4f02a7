// for loops over ranges and lists, nested. (p4c's BMv2 back end does not have them.)
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        bit<64> sum = 0;
        for (bit<8> i in 8w1 .. 8w4) {
            for (bit<8> j in 8w1 .. 8w3) {
                if (j > i) {
                    break;
                }
                sum = sum + (bit<64>) (i * j);
            }
        }
        for (bit<32> x in (list<bit<32>>) {hdr.h.a, hdr.h.b, 1000}) {
            sum = sum + (bit<64>) x;
        }
        hdr.h.r = sum;
    }
}

#include "../harness/main.p4"
