// error 4:10: 'g' takes 1 argument, not 2
extern void g(in bit<8> a);
void f() {
    g(1, 2);
}
