"""Data of a schedule, and what follows from them alone: transfers, use, whose it is."""
