// error 2:11: int<0>: the width must be from 1 to 2048
const int<0> a = 1;
