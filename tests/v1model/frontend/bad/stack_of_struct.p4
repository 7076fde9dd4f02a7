// unsupported 4:5: arrays of struct S are not supported, only stacks of headers
struct S { bit<8> a; }
struct T {
    S[4] all;
}
