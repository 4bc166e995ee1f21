"""The commands ``datacollect measure …``."""
