// error 3:11: 'a' is not a type
const bit<8> a = 1;
control C(a x) {
    apply { }
}
