// error 6:17: match kind 'prefix' is not declared
#include <core.p4>
control C(in bit<8> a) {
    action b() { }
    table t {
        key = { a: prefix; }
        actions = { b; }
    }
    apply { }
}
