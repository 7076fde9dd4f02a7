// error 3:5: 'counter_valeu' is not declared
void f(inout bit<8> counter_value) {
    counter_valeu = 1;
}
