// error 3:14: '...' must be the last element
struct S { bit<8> a; bit<8> b; }
const S s = {..., 1};
