"""What probes of a path tell: packet pairs, connections by their number, two links together."""
