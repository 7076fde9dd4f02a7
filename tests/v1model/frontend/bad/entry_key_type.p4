// error 9:13: expected bit<8>, found bool
#include <core.p4>
control C(in bit<8> k) {
    action a() { }
    table t {
        key = { k: exact; }
        actions = { a; }
        const entries = {
            true: a();
        }
    }
    apply { }
}
