// error 4:12: expected bit<9>, found port_t
type bit<9> port_t;
bit<9> f(in port_t p) {
    return p;
}
