// error 2:18: 'b' is declared only further down
const bit<8> a = b;
const bit<8> b = 1;
