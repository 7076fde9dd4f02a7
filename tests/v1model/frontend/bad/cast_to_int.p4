// unsupported 3:21: an int that is not known at compile time
int<8> f(in int<8> a) {
    return (int<8>)((int)a & 1);
}
