// error 4:12: field 'a' is already declared
struct S {
    bit<8> a;
    bit<8> a;
}
