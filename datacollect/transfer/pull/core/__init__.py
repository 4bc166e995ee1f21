"""The collector's mind: events in, actions out. No clock, no sockets, no disk."""
