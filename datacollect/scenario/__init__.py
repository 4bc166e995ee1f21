"""What a scenario file says, the setting that it builds, and the run that comes of it."""
