// error 3:5: 'return' needs a value of bit<8>
bit<8> f() {
    return;
}
