// error 4:7: parameter 'a' is bit<8>, not bit<16>
extern void g(out bit<8> a);
void f(out bit<16> x) {
    g(x);
}
