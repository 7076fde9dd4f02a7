// error 3:15: 'a' is already declared at /tmp/fe/tests/v1model/frontend/bad/name_twice.p4:2
const bit<8> a = 1;
const bit<16> a = 2;
