// error 3:5: the left side must be something that can be assigned: parameter 'a' is in
void f(in bit<8> a) {
    a = 1;
}
