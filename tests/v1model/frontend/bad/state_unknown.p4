// error 4:20: state 'parse_ipv5' is not declared
parser P() {
    state start {
        transition parse_ipv5;
    }
    state parse_ipv4 { }
}
