// error 4:9: 'return' cannot be used in a parser
parser P() {
    state start {
        return;
    }
}
