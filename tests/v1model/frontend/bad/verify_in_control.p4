// error 5:9: 'verify' can be called only in a parser
#include <core.p4>
control C() {
    apply {
        verify(true, error.NoError);
    }
}
