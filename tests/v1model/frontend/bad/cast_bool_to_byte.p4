// error 3:12: cannot cast bool to bit<8>
bit<8> f(in bool b) {
    return (bit<8>)b;
}
