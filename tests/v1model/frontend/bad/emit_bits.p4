// error 5:9: 'emit' cannot write bit<8>, only headers
#include <core.p4>
control D(packet_out b, in bit<8> x) {
    apply {
        b.emit(x);
    }
}
