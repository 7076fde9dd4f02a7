// error 2:18: 'b' is not declared
const bit<8> a = b;
const bit<8> b = 1;
