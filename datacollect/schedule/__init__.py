"""A plan: its transfers, what follows from them, its files and pictures."""
