"""What feeds are described by, and what passes between their ends."""
