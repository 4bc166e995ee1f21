"""The engine that simulates packet by packet, in ns-3."""
