"""Formats that parties write, sign and read: each once, for all of them."""
