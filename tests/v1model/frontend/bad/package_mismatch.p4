// error 7:5: parameter 'x' of control C is 'in bit<8> x', T has 'inout bit<8> x' there
control T(inout bit<8> x);
package Top(T t);
control C(in bit<8> x) {
    apply { }
}
Top(C()) main;
