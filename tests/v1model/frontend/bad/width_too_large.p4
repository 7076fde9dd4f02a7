// error 2:11: bit<4096>: the width must be from 0 to 2048
const bit<4096> a = 1;
