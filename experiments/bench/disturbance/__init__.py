"""Does the machine that carries an emulation show in its figures? (`make bench WHAT=disturbance`)"""
