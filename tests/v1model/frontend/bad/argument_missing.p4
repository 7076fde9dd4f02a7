// error 4:5: 'g' needs an argument for 'b'
extern void g(in bit<8> a, in bit<8> b);
void f() {
    g(1);
}
