// error 2:18: expected an expression, found ';'
const bit<8> a = ;
