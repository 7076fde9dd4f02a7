// error 2:15: '|+|' needs operands with a width
const int a = 1 |+| 2;
