// error 5:13: expected bit<8>, found bool
parser P(in bit<8> a) {
    state start {
        transition select(a) {
            true: accept;
        }
    }
}
