// error 3:17: error 'Lat' is not declared
error { Late }
const error e = error.Lat;
