// error 4:7: the size of a header stack must be from 1 to 65536
header H { bit<8> a; }
struct T {
    H[0] all;
}
