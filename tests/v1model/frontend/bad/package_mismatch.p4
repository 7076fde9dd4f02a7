// error 7:5: expected control T, found control C
control T(inout bit<8> x);
package Top(T t);
control C(in bit<8> x) {
    apply { }
}
Top(C()) main;
