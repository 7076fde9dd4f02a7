// error 4:12: struct S has no member 'sorce'
struct S { bit<8> source; }
bit<8> f(in S s) {
    return s.sorce;
}
