// error 4:11: table 't' has no actions
#include <core.p4>
control C(in bit<8> a) {
    table t {
        key = { a: exact; }
    }
    apply { }
}
