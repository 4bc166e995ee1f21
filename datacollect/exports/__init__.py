"""Exports of schedules to scripts and job files of other tools, and imports of their progress."""
