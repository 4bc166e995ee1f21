"""Sealing of what a person hands in for its recipients, and what the person keeps of it."""
