"""The person: what is handed in, and what proves it."""
