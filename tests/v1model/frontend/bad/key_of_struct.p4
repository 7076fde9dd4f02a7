// error 7:17: a table key cannot be used with struct S
#include <core.p4>
struct S { bit<8> a; }
control C(in S s) {
    action b() { }
    table t {
        key = { s: exact; }
        actions = { b; }
    }
    apply { }
}
