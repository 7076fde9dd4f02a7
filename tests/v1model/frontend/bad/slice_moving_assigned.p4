// error 4:5: the left side must be something that can be assigned: the position of the slice is not known at compile time
bit<8> f(in bit<8> at) {
    bit<8> x = 0;
    x[at+:4] = 1;
    return x;
}
