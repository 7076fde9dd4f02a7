// error 6:19: header H has no varbit field
#include <core.p4>
header H { bit<8> v; }
parser P(packet_in b, out H h) {
    state start {
        b.extract(h, 8);
    }
}
