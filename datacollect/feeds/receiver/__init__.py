"""The receiving end of feeds: an agent whose file has a table ``feed``."""
