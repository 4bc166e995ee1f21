"""What answers of web servers prove: events in, actions out. No clock, no sockets."""
