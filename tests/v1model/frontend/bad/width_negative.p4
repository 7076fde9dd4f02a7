// error 2:12: bit<-1>: the width must be from 0 to 2048
const bit<(-1)> a = 1;
