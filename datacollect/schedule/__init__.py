"""A plan: its transfers, what it tells about itself, its files and pictures."""
