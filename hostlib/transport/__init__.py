"""Datagrams in and out, timers, and blocks put together from fragments."""
