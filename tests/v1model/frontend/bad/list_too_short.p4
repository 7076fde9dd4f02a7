// error 3:13: 1 elements where struct S has 2
struct S { bit<8> a; bit<8> b; }
const S s = {1};
