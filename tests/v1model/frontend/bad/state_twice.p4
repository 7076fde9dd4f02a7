// error 4:11: state 'start' is already declared
parser P() {
    state start { }
    state start { }
}
