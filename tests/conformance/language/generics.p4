// Generic structs, functions and headers; default arguments and arguments by name; overloaded functions.
#include "../harness/shape.p4"

struct box_t<T> {
    T       value;
    bit<32> count;
}

bit<32> sum(in bit<32> x, in bit<32> y = 7) {
    return x + y;
}

bit<32> pick(in bit<32> x) {
    return x;
}

bit<32> pick(in bit<32> x, in bit<32> y) {
    return y;
}

T first<T>(in T x, in T y) {
    return x;
}

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        box_t<bit<32>> box = { value = hdr.h.a, count = 2 };
        if (hdr.h.op == 0) {
            hdr.h.r = (bit<64>) (box.value * box.count);
        } else if (hdr.h.op == 1) {
            hdr.h.r = sum(hdr.h.a) ++ sum(y = hdr.h.b, x = 1);
        } else if (hdr.h.op == 2) {
            hdr.h.r = pick(hdr.h.a) ++ pick(hdr.h.a, hdr.h.b);
        } else {
            hdr.h.r = (bit<64>) first(hdr.h.a, hdr.h.b);
        }
    }
}

#include "../harness/main.p4"
