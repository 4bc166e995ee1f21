"""Controllers carry schedules out: events in, decisions out. No clock, no sockets."""
