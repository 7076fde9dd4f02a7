// error 9:13: 2 keys where 1 are matched
#include <core.p4>
control C(in bit<8> k) {
    action a() { }
    table t {
        key = { k: exact; }
        actions = { a; }
        const entries = {
            (1, 2): a();
        }
    }
    apply { }
}
