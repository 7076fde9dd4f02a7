// error 3:1: expected ';', found 'const'
const bit<8> a = 1
const bit<8> b = 2;
