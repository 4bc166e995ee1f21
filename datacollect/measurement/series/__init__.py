"""What many samples of a pair tell: averages, intervals, changes, hours of the day."""
