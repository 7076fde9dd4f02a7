// error 3:1: error 'Late' is already declared
error { Late }
error { Late }
