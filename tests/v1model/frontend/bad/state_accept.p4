// error 4:11: state 'accept' exists by itself
parser P() {
    state start { }
    state accept { }
}
