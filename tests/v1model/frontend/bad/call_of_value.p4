// error 3:5: 'a' cannot be called
void f(in bit<8> a) {
    a();
}
