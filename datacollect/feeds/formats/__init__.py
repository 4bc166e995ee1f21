"""Formats of feeds: their files, and what passes between their ends."""
