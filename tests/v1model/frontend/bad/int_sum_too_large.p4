// error 4:15: this number has more than 8192 bits
const int a = 1 << 8191;
const int b = a - 1;
const int c = a + b + 1;
