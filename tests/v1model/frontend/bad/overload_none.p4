// error 5:5: no declaration of 'g' fits 2 arguments
extern void g();
extern void g(in bit<8> a);
void f() {
    g(1, 2);
}
