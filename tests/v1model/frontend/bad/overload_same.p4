// error 3:13: 'f' is already declared with the same parameters at /tmp/fe/tests/v1model/frontend/bad/overload_same.p4:2
extern void f(in bit<8> a);
extern void f(in bit<16> a);
