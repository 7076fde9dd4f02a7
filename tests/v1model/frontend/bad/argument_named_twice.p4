// error 4:18: parameter 'a' of 'g' is given twice
extern void g(in bit<8> a, in bit<8> b = 1);
void f() {
    g(a = 1, a = 2);
}
