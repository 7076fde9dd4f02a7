"""Does the machine that carries an emulation show in its figures? (`make disturbance`)"""
