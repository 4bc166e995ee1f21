"""Configuration of an agent: its file, and setting one up."""
