"""An example of a package that adds an export format, a reader and a kind of source."""
