"""Rate limits: bytes that pass a host or a link are counted, and wait for their turn."""
