// error 5:27: select cannot be used with struct S
struct S { bit<8> a; }
parser P(in S s) {
    state start {
        transition select(s) {
            default: accept;
        }
    }
}
