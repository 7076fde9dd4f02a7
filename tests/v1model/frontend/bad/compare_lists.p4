// error 2:16: one of the two needs a type
const bool b = {1, 2} == {1, 2};
