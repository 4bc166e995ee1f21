"""The sending end of feeds."""
