"""The adaptive controller: connections pull pieces, and move to where they bring most."""
