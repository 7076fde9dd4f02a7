// error 4:12: this type has more than 65536 fields in all
header h { bit<8> a; bit<8> b; }
// each element counts
struct s { h[40000] all; }
