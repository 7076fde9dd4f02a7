// error 3:16: static_assert failed: one is small
#include <core.p4>
const bool b = static_assert(1 > 2, "one is small");
