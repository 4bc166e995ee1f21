"""The judge of schedules, from first principles."""
