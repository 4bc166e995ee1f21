"""How far a pull is: for people, for pages, for metrics."""
