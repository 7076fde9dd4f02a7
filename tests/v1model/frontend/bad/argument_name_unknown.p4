// error 4:11: 'g' has no parameter 'b'
extern void g(in bit<8> a);
void f() {
    g(b = 1);
}
