// error 2:18: this number has no digits
const bit<8> a = 8w0x_;
