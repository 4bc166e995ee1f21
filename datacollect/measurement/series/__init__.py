"""Time series of a pair's samples: averages, intervals, changes, hours of the day."""
