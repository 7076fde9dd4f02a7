// error 2:8: function 'f' can end without a 'return'
bit<8> f(in bool b) {
    if (b) {
        return 1;
    }
}
