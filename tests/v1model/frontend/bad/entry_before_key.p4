// error 7:15: the entries of a table must stand behind its key
#include <core.p4>
control C(in bit<8> k) {
    action a() { }
    table t {
        actions = { a; }
        const entries = {
            1: a();
        }
        key = { k: exact; }
    }
    apply { }
}
