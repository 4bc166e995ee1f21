"""Sources of bytes: one protocol, and a folder for each kind of source."""
