// error 2:20: shift by more than 8192 bits
const int a = 1 << 100000000;
