// error 4:7: parameter 'a' is out: it must be something that can be assigned: this is a value
extern void g(out bit<8> a);
void f() {
    g(1);
}
