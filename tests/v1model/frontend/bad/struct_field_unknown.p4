// error 3:18: struct S has no field 'c'
struct S { bit<8> a; }
const S s = {c = 1};
