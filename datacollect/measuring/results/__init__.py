"""Results of tests: problems with curves, shared links, limits, changes."""
