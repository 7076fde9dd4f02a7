"""The emulated run of one trace, without and with the pool (`make run`)."""
