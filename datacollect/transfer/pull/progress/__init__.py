"""Progress of a pull: for people, for pages, for metrics."""
