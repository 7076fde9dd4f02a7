// Structs, tuples and headers as values: copies, comparison, nesting, initialisers by name and by place.
#include "../harness/shape.p4"

struct inner_t {
    bit<8>  x;
    bit<24> y;
}

struct outer_t {
    inner_t first;
    inner_t second;
    bool    flag;
}

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        outer_t one = { { hdr.h.a[31:24], hdr.h.a[23:0] }, { x = 1, y = 2 }, false };
        outer_t two = one;
        numbers_t saved = hdr.h;
        tuple<bit<32>, bit<32>> pair = { hdr.h.a, hdr.h.b };
        two.second.y = hdr.h.b[23:0];
        if (hdr.h.op == 0) {
            hdr.h.r = one == two ? 64w1 : 0;
        } else if (hdr.h.op == 1) {
            two.second = two.first;
            hdr.h.r = two.second.x ++ two.second.y ++ one.second.x ++ one.second.y;
        } else if (hdr.h.op == 2) {
            hdr.h.a = 0;
            hdr.h.setInvalid();
            saved.r = 7;
            hdr.h = saved;
        } else if (hdr.h.op == 3) {
            hdr.h.r = pair == { hdr.h.b, hdr.h.a } ? 64w1 : 0;
        } else if (hdr.h.op == 4) {
            numbers_t none;
            none.setInvalid();
            hdr.h.r = (saved == hdr.h ? 64w1 : 0) | (saved == none ? 64w2 : 0);
        } else {
            one = { flag = true, second = { 3, 4 }, first = { y = 5, x = 6 } };
            hdr.h.r = one.first.x ++ one.first.y ++ one.second.x ++ one.second.y;
        }
    }
}

#include "../harness/main.p4"
