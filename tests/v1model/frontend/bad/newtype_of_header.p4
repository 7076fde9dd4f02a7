// error 3:6: 'type' cannot be based on header H
header H { bit<8> a; }
type H T;
