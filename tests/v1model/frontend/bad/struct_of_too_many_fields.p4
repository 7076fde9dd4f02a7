// error 19:14: this type has more than 65536 fields in all
struct s0 { bit<8> a; bit<8> b; }
struct s1 { s0 a; s0 b; }
struct s2 { s1 a; s1 b; }
struct s3 { s2 a; s2 b; }
struct s4 { s3 a; s3 b; }
struct s5 { s4 a; s4 b; }
struct s6 { s5 a; s5 b; }
struct s7 { s6 a; s6 b; }
struct s8 { s7 a; s7 b; }
struct s9 { s8 a; s8 b; }
struct s10 { s9 a; s9 b; }
struct s11 { s10 a; s10 b; }
struct s12 { s11 a; s11 b; }
struct s13 { s12 a; s12 b; }
struct s14 { s13 a; s13 b; }
struct s15 { s14 a; s14 b; }
struct s16 { s15 a; s15 b; }
struct s17 { s16 a; }
