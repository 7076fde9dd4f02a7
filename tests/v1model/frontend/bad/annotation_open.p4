// error 3:19: this annotation does not end: expected ')', found the end of the file
@name("x"
const bit<8> a = 1;
