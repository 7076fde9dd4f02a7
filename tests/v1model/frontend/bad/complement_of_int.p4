// error 2:18: '~' needs an operand with a width
const bit<8> a = ~1;
