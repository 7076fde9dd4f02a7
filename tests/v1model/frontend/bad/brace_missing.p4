// error 3:13: expected '}', found the end of the file
struct S {
    bit<8> a;
