"""The agent's state machine (sans I/O): events in, actions out. No clock, no sockets, no files."""
