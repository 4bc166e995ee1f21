"""An example of a package that adds a method, an export format, a reader and a kind of source."""
