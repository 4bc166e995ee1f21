"""Methods: plain functions from a problem to a schedule."""
