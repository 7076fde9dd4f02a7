// error 3:21: field 'a' is given twice
struct S { bit<8> a; }
const S s = {a = 1, a = 2};
