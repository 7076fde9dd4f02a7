// error 2:15: division is not defined for negative numbers
const int a = -8 / 2;
