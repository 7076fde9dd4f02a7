// error 10:19: this string has more than 65536 characters
const string a0 = "0123456789abcdef";
const string a1 = a0 ++ a0 ++ a0;
const string a2 = a1 ++ a1 ++ a1;
const string a3 = a2 ++ a2 ++ a2;
const string a4 = a3 ++ a3 ++ a3;
const string a5 = a4 ++ a4 ++ a4;
const string a6 = a5 ++ a5 ++ a5;
const string a7 = a6 ++ a6 ++ a6;
const string a8 = a7 ++ a7 ++ a7;
const string a9 = a8 ++ a8 ++ a8;
const string a10 = a9 ++ a9 ++ a9;
