// error 3:7: expected '=' or a call, found '+'
void f(inout bit<8> a) {
    a + 1 = 2;
}
