// error 2:8: parser 'P' has no state 'start'
parser P() {
    state begin { }
}
