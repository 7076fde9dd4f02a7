// error 4:12: cannot cast struct S to bit<8>
struct S { bit<8> a; }
bit<8> f(in S s) {
    return (bit<8>)s;
}
