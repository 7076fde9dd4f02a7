// error 6:19: 'extract' reads a header, not struct S
#include <core.p4>
struct S { bit<8> a; }
parser P(packet_in b, out S s) {
    state start {
        b.extract(s);
    }
}
