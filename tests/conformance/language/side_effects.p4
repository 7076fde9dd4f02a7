// Order of evaluation: && || and ?: leave out what they need not evaluate; arguments go left to right.
#include "../harness/shape.p4"

bool count(inout bit<32> calls, in bool answer) {
    calls = calls + 1;
    return answer;
}

bit<32> next(inout bit<32> counter) {
    counter = counter + 1;
    return counter;
}

bit<64> pair(in bit<32> x, in bit<32> y) {
    return x ++ y;
}

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        bit<32> calls = 0;
        bit<32> n = hdr.h.a;
        if (hdr.h.op == 0) {
            bool hit = count(calls, hdr.h.a == 1) && count(calls, hdr.h.b == 1);
            hdr.h.r = hit ? 64w1 : 0;
        } else if (hdr.h.op == 1) {
            bool hit = count(calls, hdr.h.a == 1) || count(calls, hdr.h.b == 1);
            hdr.h.r = hit ? 64w1 : 0;
        } else if (hdr.h.op == 2) {
            hdr.h.r = (bit<64>) (hdr.h.a == 1 ? next(calls) : hdr.h.b);
        } else {
            hdr.h.r = pair(next(n), next(n));
            n = n + next(n);
            calls = n;
        }
        hdr.h.b = calls;
    }
}

#include "../harness/main.p4"
