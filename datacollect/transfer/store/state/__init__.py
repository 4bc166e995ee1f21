"""What a collection remembers across its starts, in SQLite."""
