// error 4:15: this number has more than 8192 bits
const int a = 1 << 4096;
const int b = a * (a >> 1);
const int c = b * b;
