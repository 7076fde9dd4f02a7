// error 2:10: no_such_file.p4: No such file or directory
#include <no_such_file.p4>
