// error 4:19: expected an expression, found ';'
struct S { bit<8> a; }
void f() {
    bit<8> x = (S);
}
