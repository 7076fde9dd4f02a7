"""The demo: one trace, played through a real network without and with the pool (`make run`)."""
