"""Transfers that share what they share, max-min fairly."""
