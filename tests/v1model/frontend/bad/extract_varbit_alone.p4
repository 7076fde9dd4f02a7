// error 6:19: header H has a varbit field
#include <core.p4>
header H { varbit<32> v; }
parser P(packet_in b, out H h) {
    state start {
        b.extract(h);
    }
}
