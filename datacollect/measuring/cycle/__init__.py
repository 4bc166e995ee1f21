"""A cycle carried out: which tests, in which order, what is kept of it, where it goes on."""
