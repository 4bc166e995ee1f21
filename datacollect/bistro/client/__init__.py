"""The person's side: what is handed in, and what proves it."""
