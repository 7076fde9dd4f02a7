// error 3:15: 'a' is already declared
const bit<8> a = 1;
const bit<16> a = 2;
