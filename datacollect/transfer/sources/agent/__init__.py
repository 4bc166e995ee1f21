"""Agents of other hosts as sources, and as relays of routes to them."""
