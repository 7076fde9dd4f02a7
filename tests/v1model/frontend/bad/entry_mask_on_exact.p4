// error 9:13: an exact key must be one value
#include <core.p4>
control C(in bit<8> k) {
    action a() { }
    table t {
        key = { k: exact; }
        actions = { a; }
        const entries = {
            1 &&& 3: a();
        }
    }
    apply { }
}
