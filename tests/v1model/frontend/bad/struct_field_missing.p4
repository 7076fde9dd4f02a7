// error 3:13: field 'b' of struct S is missing
struct S { bit<8> a; bit<8> b; }
const S s = {a = 1};
