// error 19:9: this type has more than 65536 fields in all
struct g<T> { T a; T b; }
typedef g<bit<8>> t0;
typedef g<t0> t1;
typedef g<t1> t2;
typedef g<t2> t3;
typedef g<t3> t4;
typedef g<t4> t5;
typedef g<t5> t6;
typedef g<t6> t7;
typedef g<t7> t8;
typedef g<t8> t9;
typedef g<t9> t10;
typedef g<t10> t11;
typedef g<t11> t12;
typedef g<t12> t13;
typedef g<t13> t14;
typedef g<t14> t15;
typedef g<t15> t16;
typedef g<t16> t17;
typedef g<t17> t18;
typedef g<t18> t19;
