// error 5:13: 1 keys where 2 are matched
parser P(in bit<8> a) {
    state start {
        transition select(a, a) {
            1: accept;
        }
    }
}
