"""Commands of feeds."""
