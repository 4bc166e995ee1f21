"""The agent of a host: serves its folder over TLS, and relays others' bytes blindly."""
