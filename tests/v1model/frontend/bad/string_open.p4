// error 3:7: this string does not end
const bit<8> a = 1;
@name("open
const bit<8> b = 2;
