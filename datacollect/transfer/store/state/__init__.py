"""Persistent state of a collection across its starts, in SQLite."""
