"""The destination: a register of uploads, opening them, and what is missing."""
