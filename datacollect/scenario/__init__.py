"""Scenarios: their files, the settings that they build, and the runs that come of them."""
