"""A discrete-event simulator of the whole system at real scale: the policies, costs and keys of the live one."""
