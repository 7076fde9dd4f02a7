// error 5:40: the argument for 'index' must be known at compile time
#include <v1model.p4>
control C(in bit<8> list) {
    apply {
        resubmit_preserving_field_list(list);
    }
}
