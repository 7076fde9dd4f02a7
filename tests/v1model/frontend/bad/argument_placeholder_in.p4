// error 4:7: '_' is only possible for an 'out' parameter, not for 'a'
extern void g(in bit<8> a);
void f() {
    g(_);
}
