"""Rates that are kept: what passes a host or a link is counted, and waits for its turn."""
