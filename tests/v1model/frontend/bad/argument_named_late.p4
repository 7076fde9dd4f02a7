// error 4:14: either all arguments are named or none is
extern void g(in bit<8> a, in bit<8> b);
void f() {
    g(1, b = 2);
}
