// error 4:11: expected another element after ',', found ')'
void g(in bit<8> a) { }
void f() {
    g(8w1,);
}
