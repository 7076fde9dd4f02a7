// error 2:20: expected ';', found '$'
const bit<8> a = 1 $ 2;
