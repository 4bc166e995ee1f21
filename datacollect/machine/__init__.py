"""A machine: what bytes cost it, as a file says, and what it takes in and sends by that."""
