// Arguments by name, in another order than the parameters: they are evaluated, copied in and copied out
// from left to right as the call is written (spec section 6.8). So are the fields of a struct.
#include "../harness/shape.p4"

bit<32> next(inout bit<32> counter) {
    counter = counter + 1;
    return counter;
}

bit<32> minus(in bit<32> x, in bit<32> y) {
    return x - y;
}

bit<32> plus(in bit<32> x, in bit<32> y = 40) {
    return x + y;
}

void both(inout bit<32> x, inout bit<32> y) {
    x = x + 1;
    y = y + 2;
}

void swap<T>(inout T x, inout T y) {
    T saved = x;
    x = y;
    y = saved;
}

struct pair_t {
    bit<32> first;
    bit<32> second;
}

control Minus(in bit<32> x, in bit<32> y, out bit<32> difference) {
    apply {
        difference = x - y;
    }
}

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(16) numbers;
    Minus() subtract;
    action set(in bit<32> x, in bit<32> y) {
        hdr.h.b = x - y;
    }
    apply {
        if (hdr.h.op == 0) {
            hdr.h.b = minus(y = next(hdr.h.a), x = next(hdr.h.a));
        } else if (hdr.h.op == 1) {
            hdr.h.b = minus(x = next(hdr.h.a), y = next(hdr.h.a));
        } else if (hdr.h.op == 2) {
            hdr.h.b = plus(y = 1, x = 2) + (plus(2) << 8);
        } else if (hdr.h.op == 3) {
            swap(y = hdr.h.b, x = hdr.h.a);
        } else if (hdr.h.op == 4) {
            set(y = next(hdr.h.a), x = next(hdr.h.a));
        } else if (hdr.h.op == 5) {
            subtract.apply(difference = hdr.h.b, y = next(hdr.h.a), x = next(hdr.h.a));
        } else if (hdr.h.op == 6) {
            both(y = hdr.h.a, x = hdr.h.a);
        } else if (hdr.h.op == 7) {
            bit<32> stored;
            numbers.write(value = next(hdr.h.a), index = next(hdr.h.a));
            numbers.read(stored, hdr.h.a);
            hdr.h.b = stored;
        } else if (hdr.h.op == 8) {
            pair_t pair = { second = next(hdr.h.a), first = next(hdr.h.a) };
            hdr.h.b = pair.first - pair.second;
        }
    }
}

#include "../harness/main.p4"
