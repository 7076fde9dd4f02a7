// error 3:7: 'Pair' takes 2 type arguments, not 1
struct Pair<A, B> { A a; B b; }
const Pair<bit<8>> p = {1, 2};
