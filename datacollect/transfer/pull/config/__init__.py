"""Collection files: read, made, added to."""
