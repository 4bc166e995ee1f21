"""A cycle carried out: which tests, in which order, what is kept of it, and where it goes on."""
