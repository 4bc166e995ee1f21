"""An example of a package that adds methods, an export format, a reader and a kind of source."""
