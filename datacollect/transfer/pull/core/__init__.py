"""The collector's state machine (sans I/O): events in, actions out. No clock, sockets or disk."""
