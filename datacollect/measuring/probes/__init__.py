"""Probes of a path: packet pairs, connections by their number, two links together."""
