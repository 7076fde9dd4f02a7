// error 4:7: expected bit<8>, found bool
extern void g(in bit<8> a);
void f(in bool b) {
    g(b);
}
