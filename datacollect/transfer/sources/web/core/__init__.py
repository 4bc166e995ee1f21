"""State machine (sans I/O) of sessions with web servers: what their responses prove."""
