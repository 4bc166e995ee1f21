"""What a person hands in, sealed for its recipients, and what the person keeps of it."""
