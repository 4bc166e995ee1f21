"""Durable store of others' pieces: segments, and the room that they take, at relays and bistros."""
