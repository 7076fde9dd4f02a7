// error 4:5: expected 'state' or '}', found 'bit'
parser P() {
    state start { }
    bit<8> late;
}
