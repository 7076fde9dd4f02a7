// error 4:10: expected bit<8>, found bool
extern void g<T>(in T a, in T b);
void f(in bit<8> x, in bool y) {
    g(x, y);
}
