// error 3:13: 2 elements where struct S has 1
struct S { bit<8> a; }
const S s = {1, 2};
