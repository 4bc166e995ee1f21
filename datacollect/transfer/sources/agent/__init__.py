"""Agents of other hosts as sources, and as relays on the way to them."""
