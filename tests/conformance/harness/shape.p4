// What most conformance cases share: one header of numbers in, the same header out.
// A case includes this file, defines `control Test`, and includes main.p4.
#include <core.p4>
#include <v1model.p4>

header numbers_t {
    bit<8>  op;
    bit<32> a;
    bit<32> b;
    bit<64> r;
}

struct headers_t {
    numbers_t h;
}

#ifndef METADATA
#define METADATA
#endif

struct metadata_t {
    METADATA
}
