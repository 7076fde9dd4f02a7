// error 3:13: 'f' is already declared with the same parameters
extern void f(in bit<8> a);
extern void f(in bit<16> a);
