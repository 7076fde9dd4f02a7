// error 4:9: 'switch' cannot be used in a parser
parser P(in bit<8> a) {
    state start {
        switch (a) {
            default: { }
        }
    }
}
