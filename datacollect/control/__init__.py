"""What carries schedules out: events in, decisions out. No clock, no sockets."""
