// error 2:14: key 'a' is given twice
@info[a = 1, a = 2]
const bit<8> x = 1;
